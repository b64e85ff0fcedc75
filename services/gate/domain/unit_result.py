"""What one arm of one unit came to."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Arm(enum.StrEnum):
    """`base` is the current skill, `cand` the candidate."""

    BASE = "base"
    CAND = "cand"


class ArmResult(enum.StrEnum):
    """RIGHT or WRONG are results; ERROR and UNPARSABLE are infrastructure faults, that is missing data."""

    RIGHT = "right"
    WRONG = "wrong"
    ERROR = "error"
    UNPARSABLE = "parse_error"

    @property
    def is_infra(self) -> bool:
        """Whether the unit is missing data in this arm."""
        return self is ArmResult.ERROR or self is ArmResult.UNPARSABLE


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """One answered question: whether the prediction was right, and why the agent stopped."""

    question_id: str
    correct: bool
    stop_reason: str

    @property
    def is_fault(self) -> bool:
        """Whether the question ended in an infrastructure fault."""
        return self.stop_reason in (ArmResult.ERROR.value, ArmResult.UNPARSABLE.value)


@dataclass(frozen=True, slots=True)
class ParseCount:
    """`errors` of `questions` ended in a `parse_error`."""

    errors: int
    questions: int


NO_QUESTIONS = ParseCount(0, 0)


def count_parse_errors(questions: Iterable[QuestionResult]) -> ParseCount:
    """How many of the questions there are, and how many of them were unparsable."""
    unparsable = [question.stop_reason == ArmResult.UNPARSABLE.value for question in questions]
    return ParseCount(sum(unparsable), len(unparsable))


def fold_unit(questions: Iterable[QuestionResult]) -> ArmResult:
    """A unit is right only if all its questions are; any fault makes it missing, an unparsable one above all."""
    reasons: set[str] = set()
    all_right = True
    for question in questions:
        reasons.add(question.stop_reason)
        all_right = all_right and question.correct
    for fault in (ArmResult.UNPARSABLE, ArmResult.ERROR):
        if fault.value in reasons:
            return fault
    return ArmResult.RIGHT if all_right else ArmResult.WRONG
