"""The state of one type in a round: what was launched, what came back, and what it means. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.gate.domain.guard import Guard, GuardLimits
from services.gate.domain.prefix import Prefix
from services.gate.domain.round_events import (
    ArmResolved,
    Event,
    ObservedUnit,
    PairConsumed,
    TypeOutcome,
    Usage,
    VerdictFrozen,
)
from services.gate.domain.round_spec import TypeSpec
from services.gate.domain.unit_result import Arm, ArmResult, ParseCount, QuestionResult, fold_unit
from services.skills import text_sha256


class TypeRound:
    """One type from its first launch to its outcome."""

    def __init__(self, spec: TypeSpec, base_sha256: str, limits: GuardLimits) -> None:
        self.spec = spec
        self._base_sha256 = base_sha256
        self.prefix = Prefix(
            spec.task_type, [unit.unit_id for unit in spec.ladder], spec.parameters, limits.max_fault_share
        )
        self._guard = Guard(spec.task_type, limits)
        self._cached: set[str] = set()
        self._launched: set[int] = set()
        self._questions = dict.fromkeys(Arm, 0)
        self._faults = dict.fromkeys(Arm, 0)
        self._usage = Usage()
        self._frozen_after: float | None = None

    def needs(self, rank: int, arm: Arm) -> bool:
        """Whether that arm has to be run: candidates always, bases unless cached."""
        return arm is Arm.CAND or self.spec.ladder[rank].unit_id not in self._cached

    def take_cached(self, rank: int, correct: bool) -> ArmResolved:
        """Use a cached base result; it ran no question, so the guard never sees it."""
        unit_id = self.spec.ladder[rank].unit_id
        self._cached.add(unit_id)
        result = ArmResult.RIGHT if correct else ArmResult.WRONG
        self.prefix.resolve(unit_id, Arm.BASE, result)
        return ArmResolved(self.spec.task_type, unit_id, rank, Arm.BASE, result, cached=True, after_freeze=False)

    def launch(self, rank: int) -> None:
        """Note that an arm of this unit was launched."""
        self._launched.add(rank)

    def fold(self, arm: Arm, answers: Sequence[QuestionResult], usage: Usage) -> ArmResult:
        """The result of an arm that ran, after the guard has looked at it. Raises GuardTripped."""
        self._usage += usage
        self._questions[arm] += len(answers)
        self._faults[arm] += sum(answer.is_fault for answer in answers)
        self._guard.observe(arm, answers)
        return fold_unit(answers)

    def resolve(
        self, rank: int, arm: Arm, result: ArmResult, parse_count: ParseCount, elapsed_seconds: float
    ) -> Iterator[Event]:
        """Everything that follows from a result, in order. Raises AllUnitsExcluded when nothing could be counted."""
        unit_id, was_frozen = self.spec.ladder[rank].unit_id, self.prefix.frozen
        used = self.prefix.n_used
        rows = self.prefix.resolve(unit_id, arm, result, parse_count)
        yield ArmResolved(self.spec.task_type, unit_id, rank, arm, result, cached=False, after_freeze=was_frozen)
        for row in rows:
            if not row.excluded:
                used += 1
                launched, planned = len(self._launched), len(self.spec.ladder)
                yield PairConsumed(self.spec.task_type, row, used, launched, planned)
        if rows:
            verdict = self.prefix.verdict
            if verdict.decision.terminal:
                self._frozen_after = elapsed_seconds
                yield VerdictFrozen(self.spec.task_type, verdict)

    def outcome(self, elapsed_seconds: float, detectable_gain: float | None) -> TypeOutcome:
        """What came of the type, with the gain that a gate of its length could have seen."""
        counted = [row for row in self.prefix.rows if not row.excluded]
        return TypeOutcome(
            task_type=self.spec.task_type,
            verdict=self.prefix.verdict,
            base_accuracy=_share([row.base is ArmResult.RIGHT for row in counted]),
            cand_accuracy=_share([row.cand is ArmResult.RIGHT for row in counted]),
            n_planned=len(self.spec.ladder),
            excluded=self.prefix.excluded,
            launched=len(self._launched),
            cache_hits=len(self._cached),
            evidence=self.prefix.rows,
            observed=tuple(self._observed()),
            wall_seconds=elapsed_seconds if self._frozen_after is None else self._frozen_after,
            base_infra_rate=_ratio(self._faults[Arm.BASE], self._questions[Arm.BASE]),
            cand_infra_rate=_ratio(self._faults[Arm.CAND], self._questions[Arm.CAND]),
            detectable_gain=detectable_gain,
            base_skill_sha256=self._base_sha256,
            cand_skill_sha256=text_sha256(self.spec.candidate_text),
            questions_run=sum(self._questions.values()),
            usage=self._usage,
        )

    def _observed(self) -> Iterator[ObservedUnit]:
        consumed = {row.rank for row in self.prefix.rows if not row.excluded}
        for rank, unit in enumerate(self.spec.ladder):
            base, cand = self.prefix.result(rank, Arm.BASE), self.prefix.result(rank, Arm.CAND)
            if base is not None or cand is not None:
                yield ObservedUnit(rank, unit.unit_id, base, cand, rank in consumed, unit.unit_id in self._cached)


def _share(flags: Sequence[bool]) -> float | None:
    return _ratio(sum(flags), len(flags))


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
