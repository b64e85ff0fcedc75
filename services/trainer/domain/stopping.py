"""When a run ends before its last epoch (TRN-10), and which epoch's versions were the best (TRN-8). Pure."""

from __future__ import annotations

from collections.abc import Sequence


def epochs_without_better(scores: Sequence[float]) -> int:
    """How many of the last entries brought no score above all earlier ones.

    `scores` opens with the initial evaluation, then has one entry per finished epoch. 0 while the newest is the best.
    """
    best_at = max(range(len(scores)), key=lambda index: (scores[index], -index), default=0)
    return max(0, len(scores) - 1 - best_at)


def should_stop(scores: Sequence[float], patience: int) -> bool:
    """Whether `patience` epochs in a row brought no better best. A patience of 0 never stops."""
    return patience > 0 and epochs_without_better(scores) >= patience


def mixed_score(hard: float, soft: float | None, hard_weight: float) -> float | None:
    """`w * hard + (1 - w) * soft`, or None where nothing was judged."""
    return None if soft is None else hard_weight * hard + (1.0 - hard_weight) * soft
