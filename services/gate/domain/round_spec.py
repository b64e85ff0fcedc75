"""What a round is asked to do, checked before anything is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from services.gate.domain.errors import (
    BadRunPrefix,
    EmptyLadder,
    InvalidParameter,
    InvalidRequest,
    OverlappingTargets,
)
from services.gate.domain.guard import GuardLimits
from services.gate.domain.ladder import require_distinct
from services.gate.domain.unit_result import Arm
from services.gate.domain.verdict import GateParameters
from services.questions import Unit
from services.skills import slug

GATE_MARK = "_gate_"
BASE_SALT = "gate-base"
_TARGET_FILE = re.compile(r"[a-z0-9][a-z0-9._-]*\.md")
SOLVERS = ("tree", "direct")
SKILL_MODES = ("auto", "manual", "none")


class Target(StrEnum):
    """What a candidate replaces: a skill, which serves one task type, or a prompt, which is in force for all."""

    SKILL = "skill"
    PROMPT = "prompt"


@dataclass(frozen=True, slots=True)
class TypeSpec:
    """The gate of one task type: the candidate text of its target file, and the ladder in its declared order.

    Where `target` is a prompt, `task_type` is the name under which its gate is recorded, and the ladder has units of
    any type.
    """

    task_type: str
    target_file: str
    candidate_text: str
    ladder: tuple[Unit, ...]
    parameters: GateParameters
    target: Target = Target.SKILL


@dataclass(frozen=True, slots=True)
class RoundOptions:
    """How a round is run.

    `concurrency`: question slots that all types share. `max_speculation`: units launched beyond the first unresolved
    one at most, None for no bound. `base_salt`: salt of a base arm that is not cached, None for none.
    """

    concurrency: int = 32
    cancel_in_flight: bool = False
    max_speculation: int | None = None
    guard: GuardLimits = field(default_factory=GuardLimits)
    base_salt: str | None = BASE_SALT

    @property
    def uses_baseline_cache(self) -> bool:
        """Whether base results may come from the cache and go into it: those of the one fixed snapshot only."""
        return self.base_salt == BASE_SALT

    def __post_init__(self) -> None:
        """Check every range."""
        if self.concurrency < 1:
            raise InvalidParameter("options.concurrency", self.concurrency, "at least 1")
        if self.max_speculation is not None and self.max_speculation < 0:
            raise InvalidParameter("options.max_speculation", self.max_speculation, "at least 0")


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How agents of both arms are run; `max_steps` 0 means the agent's default."""

    max_steps: int = 0
    solver: str = "tree"
    skill_mode: str = "auto"

    def __post_init__(self) -> None:
        """Check every value."""
        if self.max_steps < 0:
            raise InvalidParameter("agent.max_steps", self.max_steps, "at least 0")
        for name, known in (("solver", SOLVERS), ("skill_mode", SKILL_MODES)):
            if getattr(self, name) not in known:
                raise InvalidParameter(f"agent.{name}", getattr(self, name), f"one of {', '.join(known)}")


@dataclass(frozen=True, slots=True)
class RoundSpec:
    """One round for several types. Raises InvalidRequest, naming the field, for what no round can be."""

    workspace: str
    run_id: str
    epoch: int
    step: int
    dataset: str
    skills_version: str
    prompts_version: str
    types: tuple[TypeSpec, ...]
    options: RoundOptions
    agent: AgentOptions

    def __post_init__(self) -> None:
        """Check names, targets and ladders."""
        for name in ("workspace", "run_id", "dataset", "skills_version", "prompts_version"):
            if not getattr(self, name):
                raise InvalidRequest(f"{name} must not be empty", field=name)
        for name in ("epoch", "step"):
            if getattr(self, name) < 0:
                raise InvalidParameter(name, getattr(self, name), "at least 0")
        if not self.types:
            raise InvalidRequest("specs must name at least one task type", field="specs")
        for index, spec in enumerate(self.types):
            _check_type(spec, f"specs[{index}]")
        _check_disjoint(self.types)
        _check_alone(self.types)

    def arm_run(self, task_type: str, arm: Arm) -> str:
        """The run id under which an arm's predictions are stored."""
        return arm_run_id(f"{self.run_id}_e{self.epoch}_s{self.step}{GATE_MARK}{slug(task_type)}", arm)


def arm_run_id(prefix: str, arm: Arm) -> str:
    """`{prefix}_base` or `{prefix}_cand`. Raises BadRunPrefix for a prefix without `_gate_`."""
    if GATE_MARK not in prefix:
        raise BadRunPrefix(prefix, field="run_id")
    return f"{prefix}_{arm}"


def _check_type(spec: TypeSpec, path: str) -> None:
    for name in ("task_type", "target_file", "candidate_text"):
        if not getattr(spec, name).strip():
            raise InvalidRequest(f"{name} must not be empty", field=f"{path}.{name}")
    if not _TARGET_FILE.fullmatch(spec.target_file):
        message = f"target_file must be a file name like action-reasoning.md, got {spec.target_file!r}"
        raise InvalidRequest(message, field=f"{path}.target_file")
    if not spec.ladder:
        raise EmptyLadder(spec.task_type, f"{path}.ladder")
    require_distinct(spec.task_type, [unit.unit_id for unit in spec.ladder], f"{path}.ladder")
    for rank, unit in enumerate(spec.ladder):
        if not unit.unit_id:
            raise InvalidRequest("unit_id must not be empty", field=f"{path}.ladder[{rank}].unit_id")
        if not unit.question_ids or len(set(unit.question_ids)) != len(unit.question_ids):
            message = f"unit {unit.unit_id!r} must have at least one question and none twice"
            raise InvalidRequest(message, field=f"{path}.ladder[{rank}].question_ids")


def _check_disjoint(types: Sequence[TypeSpec]) -> None:
    owner_of_file: dict[str, str] = {}
    owner_of_slug: dict[str, str] = {}
    for index, spec in enumerate(types):
        if spec.target_file in owner_of_file:
            owner = owner_of_file[spec.target_file]
            raise OverlappingTargets(spec.target_file, owner, spec.task_type, f"specs[{index}].target_file")
        name = slug(spec.task_type)
        if name in owner_of_slug:
            message = f"{owner_of_slug[name]!r} and {spec.task_type!r} share the slug {name!r} and so their run ids"
            raise InvalidRequest(message, field=f"specs[{index}].task_type")
        owner_of_file[spec.target_file] = owner_of_slug[name] = spec.task_type


def _check_alone(types: Sequence[TypeSpec]) -> None:
    """A prompt changes every type: accepted beside another candidate, the two were never tested together."""
    for index, spec in enumerate(types):
        if spec.target is Target.PROMPT and len(types) > 1:
            message = f"{spec.target_file} is a prompt, which must be the only candidate of its round"
            raise InvalidRequest(message, field=f"specs[{index}].target")
