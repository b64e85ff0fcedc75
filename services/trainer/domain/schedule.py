"""The order in which a run's units are rolled out: epochs, steps and batches. Pure and seeded."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """A step of a run. Epochs and steps count from 0; `global_step` counts through all epochs."""

    epoch: int
    step: int
    global_step: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """`epochs` passes over `units` in batches of `batch_size` units (the last one of an epoch may be smaller)."""

    units: tuple[str, ...]
    batch_size: int
    epochs: int
    seed: int
    max_steps_per_epoch: int | None = None

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.epochs < 1:
            raise ValueError("batch_size and epochs must be at least 1")

    @property
    def steps_per_epoch(self) -> int:
        """Number of steps of one epoch; at most `max_steps_per_epoch` where that is given."""
        full = math.ceil(len(self.units) / self.batch_size)
        return full if self.max_steps_per_epoch is None else min(full, self.max_steps_per_epoch)

    @property
    def total_steps(self) -> int:
        """Number of steps of the whole run, early stopping aside."""
        return self.steps_per_epoch * self.epochs

    def position(self, epoch: int, step: int) -> Position:
        """The position of step `step` of epoch `epoch`."""
        return Position(epoch, step, epoch * self.steps_per_epoch + step)

    def batch(self, position: Position) -> tuple[str, ...]:
        """The units of one step, in the order of the epoch's permutation."""
        ordered = epoch_order(self.units, self.seed, position.epoch)
        return tuple(ordered[position.step * self.batch_size : (position.step + 1) * self.batch_size])


def epoch_order(units: Sequence[str], seed: int, epoch: int) -> list[str]:
    """A seeded permutation of `units`, another one in each epoch; independent of the order they are given in."""
    return sorted(units, key=lambda unit: hashlib.sha256(f"batch:{seed}:{epoch}:{unit}".encode()).digest())
