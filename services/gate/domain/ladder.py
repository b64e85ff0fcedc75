"""The order of a type's units in a gate, fixed before anything of the round is drawn.

Units whose outcome is uncertain can flip, so they come first: those with an estimate p of correctness in [p_low,
p_high], by p(1-p) descending in coarse bins, then the rest in the same manner. Within a bin the order is a seeded
permutation. The estimate must never contain the draw that serves as the base result of this gate: a unit whose base is
wrong can only win and one whose base is right only lose, so an order that knows the base draw lines up the wins first.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from services.gate.domain.errors import DuplicateLadderUnit, EmptyLadder, InvalidParameter, UnknownLadderUnit

INFORMATION_BINS = 5
"""Bins of p(1-p) over [0, 1/4]: coarser than the noise of an estimate from a handful of draws."""


@dataclass(frozen=True, slots=True)
class LadderCandidate:
    """A unit with what is known of it apart from its base draw.

    `estimate`: running mean of correctness over observed epochs. Before the first one it is None, and `baseline_right`
    of `baseline_count` baseline answers were right.
    """

    unit_id: str
    question_ids: tuple[str, ...]
    estimate: float | None = None
    baseline_right: int = 0
    baseline_count: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.estimate is not None:
            if not 0 <= self.estimate <= 1:
                raise InvalidParameter("estimate", self.estimate, f"in [0, 1] (unit {self.unit_id!r})")
            return
        if self.baseline_count < 1:
            raise InvalidParameter("baseline_count", self.baseline_count, f"at least 1 (unit {self.unit_id!r})")
        if not 0 <= self.baseline_right <= self.baseline_count:
            requirement = f"between 0 and baseline_count (unit {self.unit_id!r})"
            raise InvalidParameter("baseline_right_count", self.baseline_right, requirement)

    @property
    def p(self) -> float:
        """The estimate of correctness; the rule of succession (k+1)/(n+2) at a cold start."""
        if self.estimate is not None:
            return self.estimate
        return (self.baseline_right + 1) / (self.baseline_count + 2)


@dataclass(frozen=True, slots=True)
class LadderParameters:
    """`n_max`: units at most. `p_low`, `p_high`: the estimates that make a unit informative."""

    n_max: int = 60
    p_low: float = 0.1
    p_high: float = 0.9

    def __post_init__(self) -> None:
        """Check every range."""
        if self.n_max < 1:
            raise InvalidParameter("n_max", self.n_max, "at least 1")
        if not 0 <= self.p_low <= self.p_high <= 1:
            raise InvalidParameter("p_low", self.p_low, "in [0, p_high], and p_high at most 1")


@dataclass(frozen=True, slots=True)
class LadderSeed:
    """What the permutation depends on, so that a resumed step has the same ladder and the next one another."""

    workspace: str
    task_type: str
    epoch: int
    step: int

    def place(self, unit_id: str) -> bytes:
        """The unit's place in the permutation: independent of the order in which units are handed in."""
        parts = (self.workspace, self.task_type, str(self.epoch), str(self.step), unit_id)
        return hashlib.sha256("\x1f".join(parts).encode()).digest()


@dataclass(frozen=True, slots=True)
class Rung:
    """A unit of a ladder and why it stands there: the estimate used and its bin, 0 the most informative."""

    candidate: LadderCandidate
    estimate: float
    bin: int


@dataclass(frozen=True, slots=True)
class Ladder:
    """The declared order, and how many units were excluded on request and cut at `n_max`."""

    rungs: tuple[Rung, ...]
    excluded_count: int
    cut_count: int


def build_ladder(
    candidates: Sequence[LadderCandidate], excluded: Collection[str], seed: LadderSeed, parameters: LadderParameters
) -> Ladder:
    """At most `n_max` of `candidates` without `excluded`, most informative bins first.

    Raises EmptyLadder without candidates, DuplicateLadderUnit for a unit given twice.
    """
    if not candidates:
        raise EmptyLadder(seed.task_type, field="candidates")
    require_distinct(seed.task_type, [candidate.unit_id for candidate in candidates], field="candidates")
    left_out = frozenset(excluded)
    rungs = [Rung(unit, unit.p, _bin(unit.p, parameters)) for unit in candidates if unit.unit_id not in left_out]
    rungs.sort(key=lambda rung: (rung.bin, seed.place(rung.candidate.unit_id)))
    kept = tuple(rungs[: parameters.n_max])
    return Ladder(kept, len(candidates) - len(rungs), len(rungs) - len(kept))


def _bin(p: float, parameters: LadderParameters) -> int:
    information = 4 * p * (1 - p)
    coarse = min(INFORMATION_BINS - 1, math.floor((1 - information) * INFORMATION_BINS))
    return coarse if parameters.p_low <= p <= parameters.p_high else INFORMATION_BINS + coarse


def require_distinct(task_type: str, unit_ids: Sequence[str], field: str | None = None) -> None:
    """Raise DuplicateLadderUnit for the first unit that is named twice."""
    seen: set[str] = set()
    for unit_id in unit_ids:
        if unit_id in seen:
            raise DuplicateLadderUnit(task_type, unit_id, field)
        seen.add(unit_id)


def require_known(task_type: str, ladder: Iterable[str], known: Collection[str], field: str | None = None) -> None:
    """Raise UnknownLadderUnit, listing up to five, for units that the workspace does not have."""
    unknown = [unit_id for unit_id in ladder if unit_id not in known]
    if unknown:
        raise UnknownLadderUnit(task_type, unknown, field)
