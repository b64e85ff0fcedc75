"""What the use cases need from outside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from services.evolver.domain.case import Answered
from services.evolver.domain.diagnosis import Finding
from services.evolver.domain.trace import TraceStep
from services.questions import Question
from services.video_tree import VideoTree


class ModelRole(Enum):
    """Which endpoints answer."""

    JUDGE = "judge"
    EVOLVE = "evolve"


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose call it is: the workspace that gets its record, and the run. Both may be empty."""

    workspace: str
    run_id: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a conversation; `role` is `user` or `assistant`."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer; `finish_reason` is `length` when it was cut off."""

    text: str
    finish_reason: str


class Model(Protocol):
    """The governed model."""

    async def chat(self, role: ModelRole, messages: Sequence[ChatMessage], origin: Origin) -> Reply:
        """Return the answer to a conversation that ends with a user message, without a salt.

        Raises ModelUnavailable for any failure of the infrastructure; never answers with a part.
        """


@dataclass(frozen=True, slots=True)
class QuestionDetails:
    """The rows that a diagnosis leaves behind for one question; `findings` is empty for a right answer."""

    question_id: str
    metrics: Mapping[str, object]
    findings: tuple[Finding, ...] = ()


class RunArchive(Protocol):
    """Runs, questions, versions and trees, as the store keeps them.

    Every method raises StoreUnavailable when the store does not answer and UnknownRun for what it does not have.
    """

    async def predictions(self, workspace: str, run_id: str, question_ids: Sequence[str]) -> list[Answered]:
        """Return the run's predictions of these questions, of all for an empty list, in order of question id."""

    async def traces(
        self, workspace: str, run_id: str, question_ids: Sequence[str]
    ) -> Mapping[str, tuple[TraceStep, ...]]:
        """Return the stored trace of each of these questions that has one, steps in order."""

    async def questions(self, dataset: str, question_ids: Sequence[str]) -> Mapping[str, Question]:
        """Return the questions by id."""

    async def skills(self, workspace: str, version: str) -> Mapping[str, str]:
        """Return {file: text} of a skills version."""

    async def prompts_sha256(self, workspace: str, version: str) -> str:
        """Return the fingerprint of a prompts version."""

    async def tree(self, video_id: str) -> VideoTree | None:
        """Return a video's tree; None for an empty id, or where the store has no sound tree of that id."""

    async def save_details(self, workspace: str, run_id: str, details: Sequence[QuestionDetails]) -> None:
        """Store the rows; those of the same question are replaced."""
