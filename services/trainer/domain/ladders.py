"""Ladders: the units that judge a candidate, in their declared order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LadderUnit:
    """One unit of a ladder and its questions."""

    unit_id: str
    question_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LadderCandidate:
    """A unit that may go into a ladder; `estimate` is None before the first observed epoch."""

    unit: LadderUnit
    estimate: float | None
    baseline_right_count: int
    baseline_count: int


@dataclass(frozen=True, slots=True)
class LadderRung:
    """A unit of a ladder, the estimate used, and its bin (0 is the most informative)."""

    unit: LadderUnit
    estimate: float
    bin: int


@dataclass(frozen=True, slots=True)
class Ladder:
    """A ladder in its declared order."""

    rungs: tuple[LadderRung, ...]
    excluded_count: int
    cut_count: int
