"""TRN-1: `--summarise` asks the `tool` role over gRPC."""

from typing import Any

import grpc
import pytest
from videotree.inference.v1 import chat_pb2, model_service_pb2, model_service_pb2_grpc

from services.runtime.bundled import bundled_path
from services.runtime.serving import ServiceParts
from services.runtime.testing import local_channel
from services.templates import parse_template
from services.trainer.adapters.calls import Caller
from services.trainer.adapters.caption_summaries import CaptionSummaries
from services.trainer.domain.errors import ServiceFailed
from services.trainer.domain.importing.captions_tree import captions_tree
from services.trainer.use_cases.summarise_tree import summarise_tree


class Summarising(model_service_pb2_grpc.ModelServiceServicer):
    """Answers each call with how many descriptions it was shown."""

    def __init__(self) -> None:
        self.calls: list[chat_pb2.ChatCall] = []
        self.away = False

    async def Chat(  # noqa: N802
        self, request: model_service_pb2.ChatRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> model_service_pb2.ChatResponse:
        if self.away:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no endpoint serves tool")
        self.calls.append(request.call)
        prompt = request.call.messages[0].parts[0].text
        shown = prompt.partition("<descriptions>")[2].partition("</descriptions>")[0].count("\n- ")
        result = chat_pb2.ChatResult(content="" if shown == 1 else f" Sum of {shown}. ")
        return model_service_pb2.ChatResponse(result=result)


def parts(servicer: Summarising) -> ServiceParts:
    async def close() -> None:
        return None

    def register(server: grpc.aio.Server) -> None:
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(servicer, server)

    return ServiceParts(register=register, service_names=(), status_rules={}, close=close)


async def test_trn_1_events_are_summed_up_from_frames_and_scenes_from_events() -> None:
    servicer = Summarising()
    template = parse_template(
        "tools.summarise", (bundled_path("prompts") / "tools" / "summarise.md").read_text(encoding="utf-8")
    )
    tree = captions_tree("v", {second: f"A man walks past house {second // 6}." for second in range(12)})
    async with local_channel("inference", parts(servicer)) as channel:
        summaries = CaptionSummaries(channel, Caller("inference", "here", 5.0), template)
        summed = await summarise_tree(tree, summaries)
        assert [node.text for node in summed.at_level(2)] == [
            f"Sum of {len(e.children_ids)}." for e in tree.at_level(2)
        ]
        assert summed.at_level(1)[0].text == f"Sum of {len(tree.at_level(2))}."
        assert [node.text for node in summed.at_level(3)] == [node.text for node in tree.at_level(3)]
        assert {call.role for call in servicer.calls} == {chat_pb2.ROLE_TOOL}
        assert not any(call.HasField("salt") for call in servicer.calls)
        servicer.away = True
        with pytest.raises(ServiceFailed, match="no endpoint serves tool"):
            await summarise_tree(tree, summaries)


async def test_trn_1_an_empty_summary_leaves_the_extracted_text() -> None:
    template = parse_template(
        "tools.summarise", (bundled_path("prompts") / "tools" / "summarise.md").read_text(encoding="utf-8")
    )
    tree = captions_tree("v", {0: "A man walks."})
    async with local_channel("inference", parts(Summarising())) as channel:
        summed = await summarise_tree(tree, CaptionSummaries(channel, Caller("inference", "here", 5.0), template))
    assert summed == tree
