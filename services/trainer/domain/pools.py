"""Question sets, and how a frozen split divides one among the pools diag, val and test."""

from __future__ import annotations

from dataclasses import dataclass

from services.questions import Unit


@dataclass(frozen=True, slots=True)
class Dataset:
    """A question set of the library."""

    dataset: str
    question_count: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PoolUnit:
    """A unit's place in a split; `pool` is diag, val or test."""

    unit_id: str
    task_type: str
    video_id: str
    question_ids: tuple[str, ...]
    pool: str

    @property
    def unit(self) -> Unit:
        """The unit without its pool."""
        return Unit(self.unit_id, self.task_type, self.question_ids)


@dataclass(frozen=True, slots=True)
class Pools:
    """A frozen split."""

    baseline_run_id: str
    dataset: str
    units: tuple[PoolUnit, ...]
    sha256: str = ""

    def of(self, pool: str) -> tuple[PoolUnit, ...]:
        """The units of one pool, in their stable order."""
        return tuple(unit for unit in self.units if unit.pool == pool)
