"""What the gate needs from its neighbours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from services.gate.domain.round_events import Usage
from services.gate.domain.round_spec import AgentOptions
from services.gate.domain.unit_result import QuestionResult


@dataclass(frozen=True, slots=True)
class ArmCall:
    """One arm of one unit to be answered.

    `overrides` replace files of `skills_version`, `prompt_overrides` those of `prompts_version`; `salt` None is no
    salt. At most `concurrency` of the questions may be worked on at once: the slots that the arm holds.
    """

    workspace: str
    dataset: str
    question_ids: tuple[str, ...]
    skills_version: str
    overrides: Mapping[str, str]
    prompts_version: str
    run_id: str
    salt: str | None
    agent: AgentOptions
    concurrency: int
    prompt_overrides: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArmAnswers:
    """The answers of one call, one a question, and what they cost."""

    questions: tuple[QuestionResult, ...]
    usage: Usage


class Inference(Protocol):
    """Answers questions."""

    async def answer(self, call: ArmCall) -> ArmAnswers:
        """Exactly one result for each of `call.question_ids`, stored before it is returned.

        A question that could not be answered is a result with stop reason `error` or `parse_error`. Raises
        NeighbourFailed when the call itself failed; cancelling it cancels the work.
        """
        ...


@dataclass(frozen=True, slots=True)
class BaselineKey:
    """What a cached base result is a result of, apart from the unit."""

    workspace: str
    task_type: str
    skill_sha256: str
    prompts_version: str


@dataclass(frozen=True, slots=True)
class BaselineRow:
    """One base result to be cached: whether the unit was right, and the run it came from."""

    key: BaselineKey
    unit_id: str
    correct: bool
    run_id: str


@dataclass(frozen=True, slots=True)
class PooledUnit:
    """A unit of the workspace: its type, its questions, and whether it is held out for the test."""

    task_type: str
    question_ids: tuple[str, ...]
    held_out: bool


class Store(Protocol):
    """The workspace's rows. Every method raises NeighbourFailed when the call failed."""

    async def skill_files(self, workspace: str, version: str) -> Mapping[str, str]:
        """The texts of a skills version by file name."""
        ...

    async def prompt_files(self, workspace: str, version: str) -> Mapping[str, str]:
        """The texts of a prompts version by file name."""
        ...

    async def pooled_units(self, workspace: str) -> Mapping[str, PooledUnit]:
        """All units of the workspace's split by id."""
        ...

    async def cached_results(self, key: BaselineKey, unit_ids: Collection[str]) -> Mapping[str, bool]:
        """Those of `unit_ids` that are cached, with whether they were right."""
        ...

    async def cache_results(self, rows: Sequence[BaselineRow]) -> None:
        """Write results durably; an existing one keeps its first value."""
        ...
