"""AGT-6: AnswerQuestions over gRPC, with a real store behind it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from videotree.inference.v1 import agent_pb2, agent_service_pb2, agent_service_pb2_grpc
from videotree.store.v1 import library_service_pb2, run_service_pb2, version_pb2, version_service_pb2
from videotree.store.v1 import workspace_service_pb2 as workspaces

from services.inference.adapters.store_client import StoreClient as AnswerStore
from services.inference.agent_parts import agent_servicer
from services.inference.domain.agent_errors import StoreUnavailable
from services.inference.domain.chat import ChatRequest
from services.inference.domain.errors import EndpointsUnavailable
from services.inference.rpc.status_codes import STATUS_RULES
from services.runtime.bundled import bundled_path
from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.metrics import REGISTRY
from services.runtime.serving import ServiceParts
from services.runtime.status import error_info, field_violations
from services.runtime.testing import free_port, local_channel, local_server
from services.store.config import StoreConfig
from services.store.main import build as build_store
from services.templates import read_folder
from tests.builders.inference_parts import endpoint, governed
from tests.builders.store_requests import question
from tests.builders.videos import tree_json
from tests.fakes.fake_upstream import error_reply, fake_upstream, ok_reply
from tests.fakes.in_memory_answering import skill
from tests.fakes.scripted_model import Reply, ScriptedModel, acts
from tests.fakes.store_client import StoreClient, store_client

ANSWER = acts("submit_answer", answer="A", evidence=["v1_L1_0"], reasoning="as told")
VIEW = acts("view_node", node_id="v1_L1_0")
TYPE = "Action Reasoning"
SKILLS = {
    "default-strategy.md": skill("default-strategy", "default", "Look everywhere."),
    "action-reasoning.md": skill("action-reasoning", TYPE, "Ask why."),
}


@dataclass
class Stack:
    """A real store, an agent over a scripted model, and clients of both."""

    store: StoreClient
    agent: agent_service_pb2_grpc.AgentServiceStub
    model: ScriptedModel

    def request(self, *question_ids: str, **fields: Any) -> agent_service_pb2.AnswerQuestionsRequest:
        values: dict[str, Any] = {
            "workspace": "w",
            "dataset": "d",
            "question_ids": question_ids,
            "skills": agent_pb2.SkillSet(version="v1"),
            "prompts_version": "v1",
            "run_id": "r",
            **fields,
        }
        return agent_service_pb2.AnswerQuestionsRequest(**values)

    async def answers(self, *question_ids: str, **fields: Any) -> list[agent_pb2.Answer]:
        call = self.agent.AnswerQuestions(self.request(*question_ids, **fields))
        return [response.answer async for response in call]

    async def stored(self, run_id: str = "r") -> dict[str, Any]:
        request = run_service_pb2.ListPredictionsRequest(workspace="w", run_id=run_id)
        listed = await self.store.runs.ListPredictions(request)
        return {prediction.question_id: prediction for prediction in listed.predictions}


@contextlib.asynccontextmanager
async def stack(
    root: Path, replies: Callable[[ChatRequest], Reply] | list[Reply], **model: Any
) -> AsyncIterator[Stack]:
    """Everything over real sockets."""
    async with stack_over(root, ScriptedModel(replies, **model)) as up:
        yield up


@contextlib.asynccontextmanager
async def stack_over(root: Path, model: Any) -> AsyncIterator[Stack]:
    """The same over any model."""
    store_parts = await build_store(StoreConfig(port=0, metrics_port=0, data=root))
    async with (
        local_server("store", store_parts) as running,
        open_channel(f"127.0.0.1:{running.port}", ClientCredentials()) as channel,
        local_channel("inference", _agent_parts(model, channel)) as to_agent,
    ):
        await _fill(store_client(channel))
        yield Stack(store_client(channel), agent_service_pb2_grpc.AgentServiceStub(to_agent), model)


def _agent_parts(model: Any, store: grpc.aio.Channel) -> ServiceParts:
    servicer = agent_servicer(model, store, condense_above_chars=5_000, default_concurrency=4)

    def register(server: grpc.aio.Server) -> None:
        agent_service_pb2_grpc.add_AgentServiceServicer_to_server(servicer, server)

    async def close() -> None:
        return None

    names = (agent_service_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name,)
    return ServiceParts(register=register, service_names=names, status_rules=STATUS_RULES, close=close)


async def _fill(store: StoreClient) -> None:
    await store.library.PutVideo(library_service_pb2.PutVideoRequest(video_id="v1", tree_json=tree_json()))
    questions = [question(number, video_id="v1", unit_id=f"u{number // 2}") for number in range(20)]
    await store.library.ImportQuestions(library_service_pb2.ImportQuestionsRequest(dataset="d", questions=questions))
    prompts = read_folder(bundled_path("prompts"), ["agent", "tools"])
    initial = workspaces.InitialContent(dataset="d", skills=SKILLS, prompts=prompts)
    await store.workspaces.CreateWorkspace(workspaces.CreateWorkspaceRequest(name="w", initial=initial))


async def test_agt_6_predictions_and_traces_are_in_the_store_when_they_are_streamed(tmp_path: Path) -> None:
    async with stack(tmp_path, [VIEW, ANSWER]) as up:
        async for response in up.agent.AnswerQuestions(up.request(*[f"q{number}" for number in range(8)])):
            row = (await up.stored())[response.answer.question_id]
            assert (row.prediction, row.correct, row.stop_reason, row.unit_id) == (
                "A",
                True,
                "finished",
                response.answer.unit_id,
            )
        listed = await up.store.runs.ListTraces(run_service_pb2.ListTracesRequest(workspace="w", run_id="r"))
        assert [trace.tool for trace in listed.traces] == ["view_node", "submit_answer"] * 8
        row = (await up.stored())["q3"]
        assert (row.steps_used, row.model_calls, row.prompt_tokens, list(row.evidence)) == (1, 2, 20, ["v1_L1_0"])
        rebuilt = [(step["step"], step["kind"], step["tool"]) for step in json.loads(row.steps_json)]
        assert rebuilt == [(0, "observation", "view_node"), (1, "answer", "submit_answer")]


async def test_inf_10_a_key_that_an_endpoint_repeats_is_in_no_trace_row_or_answer(tmp_path: Path) -> None:
    key = "sk-planted-51c9e2d04417"
    refusal = error_reply(401, message=f"Incorrect API key provided: {key}.")
    async with (
        fake_upstream(refusal, refusal, ok_reply(VIEW)) as upstream,
        governed(tmp_path / "cache", endpoint(upstream.base_url, api_key=key)) as model,
        stack_over(tmp_path, model) as up,
    ):
        refused, stopped_midway = [*await up.answers("q0"), *await up.answers("q1")]
        assert upstream.calls == 3
        stored = await up.stored()
        traces = await up.store.runs.ListTraces(run_service_pb2.ListTracesRequest(workspace="w", run_id="r"))
        assert f"Bearer {key}" in upstream.requests[0].head
        for said in (refused, stopped_midway, *stored.values(), *traces.traces):
            assert key not in str(said)
        assert "Incorrect API key provided: [redacted]" in str(stored["q1"])
    assert [path for path in tmp_path.rglob("*") if path.is_file() and key.encode() in path.read_bytes()] == []


async def test_cli_4_answered_questions_are_counted_by_stop_reason(tmp_path: Path) -> None:
    def counted() -> float:
        return REGISTRY.get_sample_value("videotree_questions_total", {"stop_reason": "budget_exceeded"}) or 0.0

    async with stack(tmp_path, [VIEW]) as up:
        before = counted()
        await up.answers("q0", "q1", limits=agent_pb2.AgentLimits(max_steps=1))
        assert counted() == before + 2


async def test_agt_6_an_infra_answer_says_why_and_resume_repeats_only_it(tmp_path: Path) -> None:
    broken = True

    def reply(request: ChatRequest) -> Reply:
        asked = str(request.messages[1].content)
        if broken and "happens at 1?" in asked:
            return EndpointsUnavailable("all breakers are open", wait_seconds=3)
        return ANSWER

    async with stack(tmp_path, reply) as up:
        first = {answer.question_id: answer for answer in await up.answers("q0", "q1", "q2")}
        assert (first["q1"].stop_reason, first["q1"].correct) == ("error", False)
        assert "all breakers are open" in first["q1"].error_detail
        broken = False
        calls = len(up.model.requests)
        again = {answer.question_id: answer for answer in await up.answers("q0", "q1", "q2", resume=True)}
        assert {question_id: answer.resumed for question_id, answer in again.items()} == {
            "q0": True,
            "q1": False,
            "q2": True,
        }
        assert all(answer.correct for answer in again.values())
        assert len(up.model.requests) == calls + 1
        fresh = await up.answers("q0", run_id="other", resume=True)
        assert not fresh[0].resumed


async def test_agt_6_a_candidate_travels_as_an_override(tmp_path: Path) -> None:
    async with stack(tmp_path, [ANSWER]) as up:
        candidate = skill("action-reasoning", TYPE, "Ask how.")
        skills = agent_pb2.SkillSet(version="v1", overrides={"action-reasoning.md": candidate})
        await up.answers("q0", skills=skills, salt="r_gate_cand")
        assert "Ask how." in str(up.model.requests[0].messages[0].content)
        assert up.model.salts == ["r_gate_cand"]


async def test_agt_6_a_new_version_is_seen_and_a_missing_one_is_not_found(tmp_path: Path) -> None:
    async with stack(tmp_path, [ANSWER]) as up:
        change = version_pb2.VersionChange(
            kind=version_pb2.VERSION_KIND_SKILLS,
            parent="v1",
            overrides={"action-reasoning.md": skill("action-reasoning", TYPE, "Ask when.")},
            source=version_pb2.VERSION_SOURCE_MANUAL,
        )
        await up.store.versions.PublishVersion(version_service_pb2.PublishVersionRequest(workspace="w", change=change))
        await up.answers("q0", skills=agent_pb2.SkillSet(version="v2"))
        assert "Ask when." in str(up.model.requests[0].messages[0].content)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await up.answers("q0", skills=agent_pb2.SkillSet(version="v9"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_agt_6_a_wrong_request_names_its_field(tmp_path: Path) -> None:
    async with stack(tmp_path, [ANSWER]) as up:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await up.answers("q0", "q0")
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert list(field_violations(caught.value)) == ["question_ids[1]"]


async def test_agt_6_unknown_questions_and_broken_versions_have_their_status(tmp_path: Path) -> None:
    async with stack(tmp_path, [ANSWER]) as up:
        with pytest.raises(grpc.aio.AioRpcError) as missing:
            await up.answers("q0", "q99")
        assert missing.value.code() is grpc.StatusCode.NOT_FOUND
        assert "q99" in str(missing.value.details())
        broken = agent_pb2.SkillSet(version="v1", overrides={"action-reasoning.md": "no front matter"})
        with pytest.raises(grpc.aio.AioRpcError) as unusable:
            await up.answers("q0", skills=broken)
        assert unusable.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        info = error_info(unusable.value)
        assert info is not None
        assert info.reason == "UNUSABLE_VERSION"


async def test_agt_6_a_cancelled_call_stops_within_a_second_and_keeps_what_is_stored(tmp_path: Path) -> None:
    async with stack(tmp_path, [ANSWER], seconds=0.1) as up:
        limits = agent_pb2.AgentLimits(concurrency=2)
        call = up.agent.AnswerQuestions(up.request(*[f"q{number}" for number in range(20)], limits=limits))
        seen = [response.answer.question_id async for response in _first(call, 2)]
        call.cancel()
        await asyncio.sleep(0.5)
        assert up.model.in_flight == 0
        asked = len(up.model.requests)
        await asyncio.sleep(0.3)
        assert len(up.model.requests) == asked < 12
        assert set(seen) <= set(await up.stored())


async def _first(call: Any, count: int) -> AsyncIterator[Any]:
    for _ in range(count):
        yield await call.read()


async def test_agt_6_a_deadline_ends_the_call(tmp_path: Path) -> None:
    async with stack(tmp_path, [ANSWER], seconds=30) as up:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in up.agent.AnswerQuestions(up.request("q0"), timeout=0.5):
                pass
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await asyncio.sleep(0.2)
        assert up.model.in_flight == 0


async def test_agt_6_a_store_that_never_answers_is_reported_as_away() -> None:
    async with open_channel(f"127.0.0.1:{free_port()}", ClientCredentials()) as nowhere:
        client = AnswerStore(nowhere, retry_seconds=0.3)
        with pytest.raises(StoreUnavailable):
            await client.questions("d", ["q0"])


async def test_agt_5_a_video_without_a_tree_is_an_error_of_its_questions_only(tmp_path: Path) -> None:
    async with stack(tmp_path, [ANSWER]) as up:
        lost = question(50, video_id="gone")
        await up.store.library.ImportQuestions(
            library_service_pb2.ImportQuestionsRequest(
                dataset="e", questions=[lost, question(51, video_id="v1"), question(52, video_id="")]
            )
        )
        answers = {answer.question_id: answer for answer in await up.answers("q50", "q51", "q52", dataset="e")}
        assert {question_id: answer.stop_reason for question_id, answer in answers.items()} == {
            "q50": "error",
            "q51": "finished",
            "q52": "error",
        }
        assert "no tree of video 'gone'" in answers["q50"].error_detail
        assert "need the direct solver" in answers["q52"].error_detail
        direct = await up.answers("q52", dataset="e", solver=agent_pb2.SOLVER_DIRECT, run_id="direct")
        assert direct[0].stop_reason == "parse_error"
