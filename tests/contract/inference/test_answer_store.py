"""The ports of answering questions, on the fake and on the real store behind gRPC alike."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

import pytest
from videotree.store.v1 import library_service_pb2
from videotree.store.v1 import workspace_service_pb2 as workspaces

from services.inference.adapters.store_client import StoreClient
from services.inference.domain.agent_errors import NotFound
from services.inference.domain.agent_loop import StopReason
from services.inference.domain.agent_transcript import EntryKind, TranscriptEntry
from services.inference.domain.prediction import AnswerRecord, Spent, Submission
from services.inference.use_cases.answer_ports import AnswerLog, FramesMissing, Library, VersionKind, VideoUnusable
from services.questions import Question
from services.runtime.bundled import bundled_path
from services.runtime.testing import local_channel
from services.store.config import StoreConfig
from services.store.main import build as build_store
from services.templates import read_folder
from tests.builders.videos import kitchen, question, tree_json
from tests.fakes.in_memory_answering import InMemoryAnswering, skill
from tests.fakes.store_client import store_client

QUESTIONS = [question(f"q{number}", unit_id="u") for number in range(3)]
SKILLS = {
    "default-strategy.md": skill("default-strategy", "default", "Look everywhere."),
    "counting-problem.md": skill("counting-problem", "Counting Problem", "Count twice."),
}
JPEG = b"\xff\xd8\xff\xe0 not much of a picture \xff\xd9"


class Answering(Library, AnswerLog, Protocol):
    """Both ports."""


@pytest.fixture(params=["memory", "store"])
async def answering(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Answering]:
    """A workspace `w` with three questions about one video of one frame."""
    make = _in_memory if request.param == "memory" else _in_store
    async with make(tmp_path) as made:
        yield made


@contextlib.asynccontextmanager
async def _in_memory(root: Path) -> AsyncIterator[Answering]:
    fake = InMemoryAnswering(QUESTIONS)
    fake.jpegs["L3_0"] = JPEG
    yield fake


@contextlib.asynccontextmanager
async def _in_store(root: Path) -> AsyncIterator[Answering]:
    async with local_channel("store", await build_store(StoreConfig(port=0, metrics_port=0, data=root))) as channel:
        store = store_client(channel)
        await store.library.PutVideo(library_service_pb2.PutVideoRequest(video_id="v1", tree_json=tree_json()))
        frames = library_service_pb2.PutFramesRequest(video_id="v1")
        frames.frames.add(name="L3_0", jpeg=JPEG)
        await store.library.PutFrames(frames)
        imported = library_service_pb2.ImportQuestionsRequest(dataset="d")
        for each in QUESTIONS:
            imported.questions.add(
                question_id=each.question_id,
                video_id=each.video_id,
                task_type=each.task_type,
                text=each.text,
                options=each.options,
                answer=each.answer,
                unit_id=each.unit_id,
            )
        await store.library.ImportQuestions(imported)
        prompts = read_folder(bundled_path("prompts"), ["agent", "tools"])
        initial = workspaces.InitialContent(dataset="d", skills=SKILLS, prompts=prompts)
        await store.workspaces.CreateWorkspace(workspaces.CreateWorkspaceRequest(name="w", initial=initial))
        yield StoreClient(channel)


def record(asked: Question, reason: StopReason = StopReason.FINISHED, prediction: str = "B") -> AnswerRecord:
    submission = Submission(reason, prediction, ("v1_L2_0",), "because", "", 1)
    entry = TranscriptEntry(0, EntryKind.ANSWER, "submit_answer", {"answer": prediction}, "", "thought")
    return AnswerRecord("r", asked, submission, Spent(2, 1, 30, 4), (entry,))


async def test_questions_come_in_the_order_asked(answering: Answering) -> None:
    assert await answering.questions("d", ["q2", "q0"]) == [QUESTIONS[2], QUESTIONS[0]]
    with pytest.raises(NotFound, match="q9"):
        await answering.questions("d", ["q0", "q9"])


async def test_versions_hold_their_files(answering: Answering) -> None:
    assert await answering.version("w", VersionKind.SKILLS, "v1") == SKILLS
    prompts = await answering.version("w", VersionKind.PROMPTS, "v1")
    assert "{{skills}}" in prompts["agent.system.md"]
    with pytest.raises(NotFound):
        await answering.version("w", VersionKind.SKILLS, "v9")


async def test_trees_are_checked_and_missing_ones_are_named(answering: Answering) -> None:
    assert (await answering.tree("v1")).tree == kitchen()
    with pytest.raises(VideoUnusable, match="'gone'"):
        await answering.tree("gone")


async def test_frames_come_in_the_order_asked(answering: Answering) -> None:
    assert await answering.frames("v1", ["L3_0"]) == [JPEG]
    with pytest.raises(FramesMissing):
        await answering.frames("v1", ["L3_0", "L3_8"])


async def test_agt_6_what_was_appended_is_answered_unless_it_is_missing_data(answering: Answering) -> None:
    first, second = record(QUESTIONS[0]), record(QUESTIONS[1], StopReason.BUDGET_EXCEEDED, "")
    for each in (first, second, record(QUESTIONS[2], StopReason.ERROR, "")):
        await answering.append("w", each)
    found = {each.question.question_id: each for each in await answering.answered("w", "r", QUESTIONS)}
    assert set(found) == {"q0", "q1"}
    assert (found["q0"].submission, found["q0"].spent) == (first.submission, first.spent)
    assert (found["q0"].correct, found["q1"].correct) == (True, False)
    assert await answering.answered("w", "other", QUESTIONS) == []


async def test_agt_6_appending_again_replaces(answering: Answering) -> None:
    await answering.append("w", record(QUESTIONS[0], StopReason.ERROR, ""))
    for _ in range(2):
        await answering.append("w", record(QUESTIONS[0], prediction="C"))
    (found,) = await answering.answered("w", "r", QUESTIONS)
    assert (found.submission.prediction, found.correct) == ("C", False)
