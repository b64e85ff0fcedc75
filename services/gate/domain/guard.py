"""The guard: too many infrastructure faults mean that the figures of a round are worthless.

The candidate's own `parse_error` is not a fault of the infrastructure: `pessimistic.py` judges it, by the same limit
and with a consequence for the candidate alone. Were it counted here, a candidate that spoils the output format would
abort the round of every other type, again after each resume.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.gate.domain.errors import GuardTripped, InvalidParameter
from services.gate.domain.stability import DEFAULT_MAX_SHARE
from services.gate.domain.unit_result import Arm, ArmResult, QuestionResult


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """`max_fault_share`: of the questions that ran, in (0, 1]. `min_questions`: fewer than these are not judged."""

    max_fault_share: float = DEFAULT_MAX_SHARE
    min_questions: int = 10

    def __post_init__(self) -> None:
        """Check both ranges."""
        if not 0 < self.max_fault_share <= 1:
            raise InvalidParameter("guard_error_share", self.max_fault_share, "in (0, 1]")
        if self.min_questions < 1:
            raise InvalidParameter("guard_min_questions", self.min_questions, "at least 1")


class Guard:
    """Counts the questions that ran for one type. Cached bases ran nothing and are never observed."""

    def __init__(self, task_type: str, limits: GuardLimits) -> None:
        self._task_type = task_type
        self._limits = limits
        self.questions = 0
        self.faults = 0

    def observe(self, arm: Arm, results: Iterable[QuestionResult]) -> None:
        """Count one arm's questions. Raises GuardTripped when the share of faults is above its limit."""
        for result in results:
            self.questions += 1
            self.faults += result.is_fault and not _candidates_own(arm, result)
        over = self.faults > self._limits.max_fault_share * self.questions
        if over and self.questions >= self._limits.min_questions:
            raise GuardTripped(self._task_type, self.faults, self.questions, self._limits.max_fault_share)


def _candidates_own(arm: Arm, result: QuestionResult) -> bool:
    return arm is Arm.CAND and result.stop_reason == ArmResult.UNPARSABLE.value
