"""The RunArchive port: the fake that tests use and the adapter on a served store behave alike."""

from collections.abc import AsyncIterator

import pytest
from videotree.store.v1 import (
    library_service_pb2,
    prediction_pb2,
    question_pb2,
    run_service_pb2,
    training_service_pb2,
    workspace_service_pb2,
)

from services.evolver.adapters import store_archive
from services.evolver.adapters.store_archive import StoreArchive
from services.evolver.domain.case import Answered
from services.evolver.domain.diagnosis import Finding
from services.evolver.domain.errors import UnknownRun
from services.evolver.domain.trace import TraceStep
from services.evolver.use_cases.ports import QuestionDetails, RunArchive
from services.runtime.testing import local_channel
from tests.builders.cases import SKILL, question, small_tree, tree_json
from tests.fakes.evolver_fakes import InMemoryArchive
from tests.fakes.in_memory_store import in_memory_store_parts
from tests.fakes.store_client import StoreClient, store_client

COUNT = 7
IDS = [f"q{number}" for number in range(COUNT)]
ANSWERS = [Answered(each, "A", False, "finished", ("v_e1",), "seen", 1, "[]") for each in IDS]
STEPS = (TraceStep(0, "view_node", {"node_id": "v_e1"}, "onions", "look"), TraceStep(2, "submit_answer", {}, "", ""))
SKILLS = {"action-reasoning.md": SKILL, "default-strategy.md": SKILL}
DETAILS = [QuestionDetails("q1", {"repeat_visits": 0}, (Finding("skill", None, {"verdict": "sound"}, {0: {"a": 1}}),))]


@pytest.fixture(params=["fake", "store"])
async def archive(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunArchive]:
    if request.param == "fake":
        traces = dict.fromkeys(IDS, STEPS)
        yield InMemoryArchive([question(each) for each in IDS], ANSWERS, traces, SKILLS, {"v": small_tree()})
        return
    for name in ("_QUESTIONS_A_CALL", "_PREDICTIONS_A_PAGE", "_TRACES_A_PAGE"):
        monkeypatch.setattr(store_archive, name, 3)
    async with local_channel("store", in_memory_store_parts()) as channel:
        await _fill(store_client(channel))
        yield StoreArchive(channel, 0.0)


async def _fill(store: StoreClient) -> None:
    await store.library.PutVideo(library_service_pb2.PutVideoRequest(video_id="v", tree_json=tree_json()))
    asked = [question(each) for each in IDS]
    messages = [
        question_pb2.Question(
            question_id=each.question_id, video_id="v", task_type=each.task_type, text=each.text, options=each.options,
            answer=each.answer,
        )
        for each in asked
    ]  # fmt: skip
    await store.library.ImportQuestions(library_service_pb2.ImportQuestionsRequest(dataset="d", questions=messages))
    initial = workspace_service_pb2.InitialContent(dataset="d", skills=SKILLS, prompts={"agent.system.md": "Go.\n"})
    await store.workspaces.CreateWorkspace(workspace_service_pb2.CreateWorkspaceRequest(name="w", initial=initial))
    predictions = [
        prediction_pb2.Prediction(
            run_id="r", question_id=each.question_id, video_id="v", task_type="Action Reasoning", prediction="A",
            answer="B", stop_reason="finished", evidence=["v_e1"], reasoning="seen", steps_used=1, steps_json="[]",
            unit_id=each.question_id,
        )
        for each in ANSWERS
    ]  # fmt: skip
    traces = [
        prediction_pb2.Trace(
            run_id="r",
            question_id=each,
            step=step.step,
            tool=step.tool,
            args_json='{"node_id": "v_e1"}' if step.args else "{}",
            output=step.output,
            thought=step.thought,
        )
        for each in IDS
        for step in STEPS
    ]
    await store.runs.AppendPredictions(
        run_service_pb2.AppendPredictionsRequest(workspace="w", predictions=predictions, traces=traces)
    )


async def test_all_predictions_come_over_several_pages_in_order(archive: RunArchive) -> None:
    assert await archive.predictions("w", "r", []) == ANSWERS
    assert await archive.predictions("w", "r", ["q5", "q1"]) == [ANSWERS[1], ANSWERS[5]]


async def test_traces_come_whole_and_in_order(archive: RunArchive) -> None:
    assert await archive.traces("w", "r", IDS) == dict.fromkeys(IDS, STEPS)
    assert await archive.traces("w", "r", []) == {}


async def test_questions_come_by_id_and_a_missing_one_is_an_error(archive: RunArchive) -> None:
    assert await archive.questions("d", IDS) == {each: question(each) for each in IDS}
    with pytest.raises(UnknownRun):
        await archive.questions("d", ["q1", "nothing"])


async def test_versions_give_texts_and_a_fingerprint(archive: RunArchive) -> None:
    assert await archive.skills("w", "v1") == SKILLS
    assert await archive.prompts_sha256("w", "v1") == await archive.prompts_sha256("w", "v1") != ""


async def test_a_tree_is_there_or_none(archive: RunArchive) -> None:
    tree = await archive.tree("v")
    assert tree is not None
    assert tree.nodes.keys() == small_tree().nodes.keys()
    assert await archive.tree("nothing") is None
    assert await archive.tree("") is None


async def test_details_can_be_saved_twice(archive: RunArchive) -> None:
    await archive.save_details("w", "r", DETAILS)
    await archive.save_details("w", "r", DETAILS)
    if isinstance(archive, InMemoryArchive):
        assert archive.saved == {"q1": DETAILS[0]}


async def test_saved_details_are_rows_of_the_three_tables() -> None:
    async with local_channel("store", in_memory_store_parts()) as channel:
        store = store_client(channel)
        await _fill(store)
        await StoreArchive(channel, 0.0).save_details("w", "r", DETAILS)
        stored = await store.training.ListDiagnosisDetails(
            training_service_pb2.ListDiagnosisDetailsRequest(workspace="w", run_id="r")
        )
        assert [row.metrics_json for row in stored.metrics] == ['{"repeat_visits": 0}']
        assert [(row.step, row.evaluation_json) for row in stored.spans] == [(0, '{"a": 1}')]
        assert [(row.stage, row.finding_json) for row in stored.stages] == [
            ("skill", '{"explains": false, "verdict": "sound"}')
        ]
