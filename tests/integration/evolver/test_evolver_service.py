"""EVO-13: the evolver over gRPC, on a store and a model service that are served in this process."""

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from videotree.evolver.v1 import edit_pb2, evolver_service_pb2_grpc
from videotree.evolver.v1 import evolver_service_pb2 as pb
from videotree.inference.v1 import chat_pb2, model_service_pb2, model_service_pb2_grpc
from videotree.store.v1 import (
    library_service_pb2,
    prediction_pb2,
    question_pb2,
    run_service_pb2,
    training_service_pb2,
    workspace_service_pb2,
)

from services.evolver.adapters.model_client import GrpcModel
from services.evolver.config import EvolverConfig
from services.evolver.domain.errors import ModelUnavailable
from services.evolver.main import build
from services.evolver.use_cases.ports import ChatMessage, ModelRole, Origin
from services.runtime.serving import ServiceParts
from services.runtime.status import error_info, field_violations
from services.runtime.testing import local_channel, local_server
from tests.builders.cases import SKILL, question, tree_json
from tests.fakes.in_memory_store import in_memory_store_parts
from tests.fakes.store_client import StoreClient, store_client

SILENT = {"verdict": "silent", "quote": "", "why": "nothing on pots", "reminder": ""}
EDITS = {
    "suggestions": [],
    "edits": [
        {
            "op": "insert_after", "target": "- Start from the overview", "content": "- Open the event before.",
            "rationale": "causes come first", "cases": ["q1"],
        }
    ],
}  # fmt: skip
ANSWERS: dict[str, Any] = {
    "diagnose.evidence": {"needed_nodes": [], "skill_directs_there": False, "why": "none", "reminder": ""},
    "diagnose.tool_output": {
        "steps": [{"step": 0, "verdict": "incomplete", "detail": "the crying"}], "cause_step": None, "why": "w",
        "reminder": "",
    },
    "diagnose.skill": SILENT,
    "diagnose.score": {"quality": 0.5, "why": "v_e1"},
    "evolve.skill": EDITS,
    "slow.momentum": {"momentum": ["Keep opening the event before."]},
}  # fmt: skip


class FakeModelService(model_service_pb2_grpc.ModelServiceServicer):
    """Answers by task; `fail` holds tasks that are answered with UNAVAILABLE, `hold` blocks every call.

    `away_until` is a time of the monotonic clock before which every call is UNAVAILABLE.
    """

    def __init__(self) -> None:
        self.calls: list[chat_pb2.ChatCall] = []
        self.fail: set[str] = set()
        self.away_until = 0.0
        self.hold: asyncio.Event | None = None
        self.cancelled = 0

    async def Chat(  # noqa: N802 - named by the proto
        self, request: model_service_pb2.ChatRequest, context: Any
    ) -> model_service_pb2.ChatResponse:
        self.calls.append(request.call)
        found = re.search(r"<task>(.*?)</task>", request.call.messages[0].parts[0].text)
        assert found is not None
        if self.hold is not None:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if found[1] in self.fail or time.monotonic() < self.away_until:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "breaker open")
        result = chat_pb2.ChatResult(content=json.dumps(ANSWERS[found[1]]), finish_reason="stop")
        return model_service_pb2.ChatResponse(result=result)

    def parts(self) -> ServiceParts:
        def register(server: grpc.aio.Server) -> None:
            model_service_pb2_grpc.add_ModelServiceServicer_to_server(self, server)

        async def close() -> None:
            return None

        return ServiceParts(register, ("videotree.inference.v1.ModelService",), {}, close)


@dataclass
class Stack:
    evolver: evolver_service_pb2_grpc.EvolverServiceStub
    store: StoreClient
    model: FakeModelService


@contextlib.asynccontextmanager
async def stack() -> AsyncIterator[Stack]:
    model = FakeModelService()
    async with (
        local_server("store", in_memory_store_parts()) as store,
        local_server("inference", model.parts()) as inference,
    ):
        config = EvolverConfig(
            port=0,
            metrics_port=0,
            store_address=f"127.0.0.1:{store.port}",
            inference_address=f"127.0.0.1:{inference.port}",
            store_retry_seconds=0,
            model_retry_seconds=0,
        )
        async with (
            local_channel("evolver", await build(config), config) as channel,
            grpc.aio.insecure_channel(config.store_address) as store_channel,
        ):
            client = store_client(store_channel)
            await _fill(client)
            yield Stack(evolver_service_pb2_grpc.EvolverServiceStub(channel), client, model)


async def _fill(store: StoreClient) -> None:
    await store.library.PutVideo(library_service_pb2.PutVideoRequest(video_id="v", tree_json=tree_json()))
    asked = [question(f"q{number}") for number in (1, 2, 3)]
    messages = [
        question_pb2.Question(
            question_id=each.question_id, video_id="v", task_type=each.task_type, text=each.text, options=each.options,
            answer=each.answer,
        )
        for each in asked
    ]  # fmt: skip
    await store.library.ImportQuestions(library_service_pb2.ImportQuestionsRequest(dataset="d", questions=messages))
    initial = workspace_service_pb2.InitialContent(
        dataset="d",
        skills={"action-reasoning.md": SKILL, "default-strategy.md": SKILL},
        prompts={"agent.system.md": "You answer.\n"},
    )
    await store.workspaces.CreateWorkspace(workspace_service_pb2.CreateWorkspaceRequest(name="w", initial=initial))
    predictions = [_prediction("q1", "A"), _prediction("q2", "B"), _prediction("q3", "", stop_reason="error")]
    traces = [
        prediction_pb2.Trace(
            run_id="r", question_id=each, step=0, tool="view_node", args_json='{"node_id": "v_e1"}', output="onions"
        )
        for each in ("q1", "q2")
    ]
    await store.runs.AppendPredictions(
        run_service_pb2.AppendPredictionsRequest(workspace="w", predictions=predictions, traces=traces)
    )


def _prediction(question_id: str, letter: str, **fields: Any) -> prediction_pb2.Prediction:
    return prediction_pb2.Prediction(
        **{
            "run_id": "r", "question_id": question_id, "video_id": "v", "task_type": "Action Reasoning",
            "prediction": letter, "answer": "B", "correct": letter == "B", "stop_reason": "finished",
            "steps_json": "[]", "unit_id": question_id, "evidence": ["v_e1"], "reasoning": "seen", "steps_used": 1,
            **fields,
        }
    )  # fmt: skip


def _diagnose(**fields: Any) -> pb.DiagnoseRequest:
    return pb.DiagnoseRequest(
        **{
            "workspace": "w", "run_id": "r", "dataset": "d", "skills_version": "v1", "prompts_version": "v1",
            "with_case_packs": True, "max_steps": 20, **fields,
        }
    )  # fmt: skip


async def test_evo_13_diagnose_streams_progress_and_then_the_result_with_stored_details() -> None:
    async with stack() as running:
        events = [event async for event in running.evolver.Diagnose(_diagnose())]
        assert [event.WhichOneof("event") for event in events] == ["progress", "progress", "result"]
        result = events[-1].result
        assert [(each.question_id, each.category) for each in result.diagnoses] == [("q1", "skill_silent")]
        assert (result.right_count, result.wrong_count, result.infra_count) == (1, 1, 1)
        assert list(result.case_packs[0].unit_ids) == ["q1", "q2"]
        assert result.case_packs[0].target_file == "action-reasoning.md"
        stored = await running.store.training.ListDiagnosisDetails(
            training_service_pb2.ListDiagnosisDetailsRequest(workspace="w", run_id="r")
        )
        assert {metric.question_id for metric in stored.metrics} == {"q1", "q2"}
        assert json.loads(stored.metrics[0].metrics_json)["budget_use"] == 0.05
        assert [json.loads(span.evaluation_json)["verdict"] for span in stored.spans] == ["incomplete"]
        assert "skill" in {stage.stage for stage in stored.stages}


async def test_inf_6_judge_and_evolve_calls_carry_no_salt_and_name_their_run() -> None:
    async with stack() as running:
        events = [event async for event in running.evolver.Diagnose(_diagnose())]
        await running.evolver.ProposeEdit(_propose(events[-1].result))
        assert {call.role for call in running.model.calls} == {chat_pb2.ROLE_JUDGE, chat_pb2.ROLE_EVOLVE}
        for call in running.model.calls:
            assert not call.HasField("salt")
            assert (call.workspace, call.run_id) == ("w", "r")


def _propose(result: pb.DiagnoseResult, **fields: Any) -> pb.ProposeEditRequest:
    values = {"workspace": "w", "run_id": "r", "current_text": SKILL, "edit_budget": 2, **fields}
    return pb.ProposeEditRequest(case_pack=result.case_packs[0], **values)


async def test_evo_13_a_rule_can_be_followed_back_to_the_wrong_answer_that_caused_it() -> None:
    async with stack() as running:
        events = [event async for event in running.evolver.Diagnose(_diagnose())]
        result = events[-1].result
        proposal = await running.evolver.ProposeEdit(_propose(result))
        assert proposal.status == pb.PROPOSAL_STATUS_CANDIDATE
        assert "- Start from the overview and choose the scene.\n- Open the event before.\n" in proposal.candidate_text
        assert proposal.edits[0].status == edit_pb2.EDIT_STATUS_APPLIED
        cause = {each.question_id: each.why for each in result.diagnoses}[proposal.edits[0].edit.cases[0]]
        assert cause == "nothing on pots"
        refused = pb.ProposeEditRequest()
        refused.CopyFrom(_propose(result))
        refused.rejected.add(fingerprint=proposal.fingerprint, reason="E 0.3, W 1, L 4")
        again = await running.evolver.ProposeEdit(refused)
        assert (again.status, again.candidate_text) == (pb.PROPOSAL_STATUS_REPEATED, "")


async def test_evo_4_more_than_half_degraded_is_aborted_with_the_figures() -> None:
    async with stack() as running:
        running.model.fail = {"diagnose.skill"}
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            _ = [event async for event in running.evolver.Diagnose(_diagnose())]
        assert caught.value.code() is grpc.StatusCode.ABORTED
        info = error_info(caught.value)
        assert info is not None
        assert (info.reason, info.metadata["degraded"], info.metadata["cases"]) == ("DEGRADED_JUDGEMENT", "1", "1")
        events = [event async for event in running.evolver.Diagnose(_diagnose(tolerate_degraded=True))]
        assert events[-1].result.degraded_count == 1


async def test_evo_13_a_client_that_goes_away_cancels_the_judge_calls() -> None:
    async with stack() as running:
        running.model.hold = asyncio.Event()
        call = running.evolver.Diagnose(_diagnose())
        await call.read()
        while not running.model.calls:
            await asyncio.sleep(0.01)
        call.cancel()
        async with asyncio.timeout(5):
            while not running.model.cancelled:
                await asyncio.sleep(0.01)


async def test_evo_13_apply_and_validate_are_pure_calls() -> None:
    async with stack() as running:
        edit = edit_pb2.Edit(op=edit_pb2.EDIT_OP_REPLACE, target="Compare every option", content="Rule out each option")
        applied = await running.evolver.ApplyEdits(pb.ApplyEditsRequest(skill_text=SKILL, edits=[edit]))
        assert applied.accepted
        assert applied.text == SKILL.replace("Compare every option", "Rule out each option")
        valid = await running.evolver.ValidateSkill(
            pb.ValidateSkillRequest(original_text=SKILL, edited_text=applied.text)
        )
        broken = await running.evolver.ValidateSkill(
            pb.ValidateSkillRequest(original_text=SKILL, edited_text=applied.text + "```\n")
        )
        assert (list(valid.violations), len(broken.violations)) == ([], 1)
        assert running.model.calls == []


async def test_evo_9_and_10_blocks_are_written_over_grpc() -> None:
    async with stack() as running:
        appendix = await running.evolver.ConsolidateAppendix(
            pb.ConsolidateAppendixRequest(workspace="w", skill_text=SKILL, reminders=["Read all options."])
        )
        assert "- Read all options." in appendix.text
        slow = await running.evolver.ProposeSlowUpdate(
            pb.ProposeSlowUpdateRequest(
                workspace="w",
                skills=[pb.SkillText(name="action-reasoning.md", text=SKILL)],
                changes=[pb.UnitChange(unit_id="q1", task_type="Action Reasoning", later_correct=True)],
            )
        )
        assert "- Keep opening the event before.\n<!-- MOMENTUM_END -->" in slow.skills[0].text


async def test_trn_8_scores_come_as_a_stream_and_are_absent_without_data() -> None:
    async with stack() as running:
        request = pb.ScoreEvidenceRequest(workspace="w", run_id="r", dataset="d")
        scores = [each async for each in running.evolver.ScoreEvidence(request)]
        assert [(each.question_id, each.HasField("score")) for each in scores] == [
            ("q1", True), ("q2", True), ("q3", False),
        ]  # fmt: skip
        assert scores[0].score == 0.5


@pytest.mark.parametrize(
    ("request_fields", "code", "field"),
    [
        ({"run_id": "nothing"}, grpc.StatusCode.NOT_FOUND, "run_id"),
        ({"workspace": "nowhere"}, grpc.StatusCode.NOT_FOUND, None),
        ({"skills_version": "v9"}, grpc.StatusCode.NOT_FOUND, None),
        ({"dataset": ""}, grpc.StatusCode.INVALID_ARGUMENT, "dataset"),
        ({"max_steps": -1}, grpc.StatusCode.INVALID_ARGUMENT, "max_steps"),
    ],
)
async def test_qua_13_a_bad_diagnose_request_is_answered_with_its_field(
    request_fields: dict[str, Any], code: grpc.StatusCode, field: str | None
) -> None:
    async with stack() as running:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            _ = [event async for event in running.evolver.Diagnose(_diagnose(**request_fields))]
        assert caught.value.code() is code
        assert field is None or field in field_violations(caught.value)


async def test_qua_13_bad_edits_and_packs_are_answered_with_their_field() -> None:
    async with stack() as running:
        cases: list[tuple[Any, Any, str]] = [
            (running.evolver.ApplyEdits, pb.ApplyEditsRequest(skill_text="x", edits=[edit_pb2.Edit()]), "edits[0].op"),
            (running.evolver.ApplyEdits, pb.ApplyEditsRequest(skill_text="x" * 1_100_000), "skill_text"),
            (running.evolver.ProposeEdit, pb.ProposeEditRequest(update_mode=7), "update_mode"),  # type: ignore[arg-type]
            (running.evolver.ProposeEdit, pb.ProposeEditRequest(current_text=SKILL), "edit_budget"),
            (running.evolver.ProposeSlowUpdate, pb.ProposeSlowUpdateRequest(), "skills"),
        ]
        bad_statistics = pb.ProposeEditRequest(current_text=SKILL, edit_budget=1)
        bad_statistics.case_pack.statistics_json = "[1]"
        cases.append((running.evolver.ProposeEdit, bad_statistics, "case_pack.statistics_json"))
        bad_case = pb.ProposeEditRequest(current_text=SKILL, edit_budget=1)
        bad_case.case_pack.failures.add(question_id="q1").diagnosis.category = "bad luck"
        cases.append((running.evolver.ProposeEdit, bad_case, "case_pack.failures[0].diagnosis.category"))
        for call, request, field in cases:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(request)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT, field
            assert field in field_violations(caught.value)


async def test_evo_13_a_model_or_store_that_is_away_is_unavailable() -> None:
    config = EvolverConfig(
        port=0,
        metrics_port=0,
        store_address="127.0.0.1:1",
        inference_address="127.0.0.1:1",
        store_retry_seconds=0,
        model_retry_seconds=0,
        model_timeout_seconds=2,
    )
    async with local_channel("evolver", await build(config), config) as channel:
        evolver = evolver_service_pb2_grpc.EvolverServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            _ = [event async for event in evolver.Diagnose(_diagnose())]
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        changed = pb.UnitChange(unit_id="q1", task_type="Action Reasoning", later_correct=True)
        slow = pb.ProposeSlowUpdateRequest(
            skills=[pb.SkillText(name="action-reasoning.md", text=SKILL)], changes=[changed]
        )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await evolver.ProposeSlowUpdate(slow)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_evo_2_an_outage_of_the_model_is_waited_out_once_for_all_calls_and_not_for_ever() -> None:
    service = FakeModelService()
    async with (
        local_server("inference", service.parts()) as inference,
        grpc.aio.insecure_channel(f"127.0.0.1:{inference.port}") as channel,
    ):
        model = GrpcModel(channel, timeout_seconds=5, retry_seconds=2)

        async def ask() -> str:
            message = ChatMessage("user", "<task>diagnose.score</task>")
            return (await model.chat(ModelRole.JUDGE, [message], Origin("w", "r"))).text

        service.away_until = time.monotonic() + 0.7
        assert set(await asyncio.gather(*(ask() for _ in range(5)))) == {json.dumps(ANSWERS["diagnose.score"])}
        service.away_until = time.monotonic() + 60
        began = time.monotonic()
        ended = await asyncio.gather(*(ask() for _ in range(5)), return_exceptions=True)
        assert {type(each) for each in ended} == {ModelUnavailable}
        asked = len(service.calls)
        with pytest.raises(ModelUnavailable):
            await ask()
        assert time.monotonic() - began < 4
        assert len(service.calls) == asked + 1
