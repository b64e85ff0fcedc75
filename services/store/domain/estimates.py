"""Running estimates of a unit's correctness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def observed(known: Mapping[str, Any] | None, correct: bool, epoch: int) -> tuple[float, int, int]:
    """Return (mean in [0, 1], observations, last epoch) after one more observation.

    An epoch is observed once: a second observation of the last epoch changes nothing.
    """
    if known is None:
        return float(correct), 1, epoch
    mean, count, last = float(known["estimate"]), int(known["observation_count"]), int(known["last_epoch"])
    if epoch <= last:
        return mean, count, last
    return mean + (float(correct) - mean) / (count + 1), count + 1, epoch
