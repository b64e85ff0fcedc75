"""What happens in a round, as it happens, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass

from services.gate.domain.prefix import EvidenceRow
from services.gate.domain.unit_result import Arm, ArmResult
from services.gate.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ArmResolved:
    """An arm of a unit ended; `after_freeze` when its type's verdict stood already, so that it does not count."""

    task_type: str
    unit_id: str
    rank: int
    arm: Arm
    result: ArmResult
    cached: bool
    after_freeze: bool


@dataclass(frozen=True, slots=True)
class PairConsumed:
    """A unit was counted. `launched`: units of which an arm was launched so far."""

    task_type: str
    row: EvidenceRow
    n_used: int
    launched: int
    n_planned: int


@dataclass(frozen=True, slots=True)
class VerdictFrozen:
    """A type's verdict became terminal."""

    task_type: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ObservedUnit:
    """What was seen of a unit, counted or not; None for an arm that did not end."""

    rank: int
    unit_id: str
    base: ArmResult | None
    cand: ArmResult | None
    consumed: bool
    base_cached: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """What answering cost, summed over questions."""

    model_calls: int = 0
    response_cache_hits: int = 0
    tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """The sum."""
        return Usage(
            self.model_calls + other.model_calls,
            self.response_cache_hits + other.response_cache_hits,
            self.tokens + other.tokens,
        )


@dataclass(frozen=True, slots=True)
class TypeOutcome:
    """What came of one type.

    Accuracies are over the counted units, fault rates over the questions that ran; None when there are none.
    `launched`: units of which an arm was launched. `wall_seconds`: from the round's start to the freeze.
    """

    task_type: str
    verdict: Verdict
    base_accuracy: float | None
    cand_accuracy: float | None
    n_planned: int
    excluded: int
    launched: int
    cache_hits: int
    evidence: tuple[EvidenceRow, ...]
    observed: tuple[ObservedUnit, ...]
    wall_seconds: float
    base_infra_rate: float | None
    cand_infra_rate: float | None
    detectable_gain: float | None
    base_skill_sha256: str
    cand_skill_sha256: str
    questions_run: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """The end of a round: types in alphabetical order, and the most questions that were in flight at once."""

    outcomes: tuple[TypeOutcome, ...]
    wall_seconds: float
    peak_in_flight: int


Event = ArmResolved | PairConsumed | VerdictFrozen
