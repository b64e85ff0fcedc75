"""What the trainer asks the gate and what it learns from it. Plain values, named as the gate names them."""

from __future__ import annotations

from dataclasses import dataclass

from services.trainer.domain.ladders import LadderUnit

ACCEPTS = frozenset({"accept_confirmed", "accept_provisional"})


@dataclass(frozen=True, slots=True)
class VerdictParameters:
    """Parameters of a verdict (GAT-2)."""

    e_confirm: float
    e_provisional: float
    w_net_min: int
    delta_min: float
    lambda_dir: float
    p1: float
    mixture: str


@dataclass(frozen=True, slots=True)
class GateSpec:
    """The gate of one task type, or of one prompt under its gate's name; `target` is skill or prompt."""

    task_type: str
    target_file: str
    candidate_text: str
    ladder: tuple[LadderUnit, ...]
    parameters: VerdictParameters
    target: str = "skill"


@dataclass(frozen=True, slots=True)
class RoundOptions:
    """How a round is run."""

    concurrency: int
    cancel_in_flight: bool
    max_speculation: int | None
    guard_error_share: float


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How agents are run: `solver` is tree or direct, `skill_mode` auto, manual or none."""

    max_steps: int
    solver: str
    skill_mode: str


@dataclass(frozen=True, slots=True)
class GateRound:
    """One round for several task types."""

    workspace: str
    run_id: str
    epoch: int
    step: int
    dataset: str
    skills_version: str
    prompts_version: str
    specs: tuple[GateSpec, ...]
    options: RoundOptions
    agent: AgentOptions


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision with all that it rests on; `decision` such as accept_confirmed.

    The last four are the candidate's own parse errors, which an accept had to survive.
    """

    decision: str
    reason: str
    e_value: float
    log_e_value: float
    w: int
    l: int  # noqa: E741 - the field's name in the gate and in the papers
    n_used: int
    n_remaining: int
    parameters: VerdictParameters
    rule_version: str
    pessimistic_losses: int = 0
    cand_parse_errors: int = 0
    cand_questions: int = 0
    max_parse_error_share: float = 0.0


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One consumed unit, with the evidence after it."""

    ladder_rank: int
    unit_id: str
    base_correct: bool
    cand_correct: bool
    e_value: float
    w: int
    l: int  # noqa: E741 - as above


@dataclass(frozen=True, slots=True)
class UnitObserved:
    """What was seen of a unit; results are right, wrong, infra_error, infra_parse or empty."""

    ladder_rank: int
    unit_id: str
    base: str
    cand: str
    consumed: bool
    base_cached: bool


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """Outcome of one task type (GAT-12)."""

    task_type: str
    verdict: Verdict
    base_accuracy: float | None
    cand_accuracy: float | None
    n_used: int
    n_planned: int
    excluded: int
    launched: int
    cache_hits: int
    stop_reason: str
    evidence: tuple[EvidenceRow, ...]
    observed: tuple[UnitObserved, ...]
    wall_seconds: float
    base_infra_rate: float | None
    cand_infra_rate: float | None
    detectable_gain: float | None
    questions_run: int
    model_calls: int
    response_cache_hits: int
    tokens: int
    peak_in_flight: int

    @property
    def accepted(self) -> bool:
        """Whether the candidate replaces the current skill."""
        return self.verdict.decision in ACCEPTS


@dataclass(frozen=True, slots=True)
class ArmResolved:
    """An arm of a unit ended."""

    task_type: str
    unit_id: str
    ladder_rank: int
    arm: str
    result: str
    cached: bool
    after_freeze: bool


@dataclass(frozen=True, slots=True)
class PairConsumed:
    """A unit was consumed."""

    task_type: str
    row: EvidenceRow
    n_used: int
    launched: int
    n_planned: int


@dataclass(frozen=True, slots=True)
class VerdictFrozen:
    """A type's verdict is terminal."""

    task_type: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """The end of a round: one outcome a type, in alphabetical order."""

    outcomes: tuple[GateOutcome, ...]
    wall_seconds: float


GateEvent = ArmResolved | PairConsumed | VerdictFrozen | RoundOutcome


@dataclass(frozen=True, slots=True)
class ProbationPair:
    """A paired result of a file against its predecessor."""

    unit_id: str
    predecessor_correct: bool
    current_correct: bool


@dataclass(frozen=True, slots=True)
class ProbationReview:
    """What a review says: continue, confirmed, roll_back or kept."""

    decision: str
    reason: str
    w: int
    l: int  # noqa: E741 - as above
    n_used: int
