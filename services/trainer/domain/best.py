"""Scores of a run's evaluations and the best version pair among them (TRN-8). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from services.trainer.domain.evaluations import DualMetric
from services.trainer.domain.workspaces import BestEntry

Measure = Literal["hard", "mixed"]
REVERTED_MARK = "+"
"""Stands in the skills version of a slow-update candidate that was not published, such as `v3+slow-update`."""


def published(metrics: Iterable[DualMetric]) -> list[DualMetric]:
    """Val evaluations of versions that exist, in the order in which they were made."""
    kinds = ("initial", "final", "slow_candidate")
    kept = [each for each in metrics if each.pool == "val" and REVERTED_MARK not in each.skills_version]
    return sorted(kept, key=lambda each: (each.epoch, kinds.index(each.version_kind)))


def reverted(metrics: Iterable[DualMetric]) -> list[DualMetric]:
    """Val evaluations of slow-update candidates that were not published."""
    return [each for each in metrics if each.pool == "val" and REVERTED_MARK in each.skills_version]


def best_entry(metrics: Iterable[DualMetric], measure: Measure) -> BestEntry | None:
    """The first of the best val evaluations by `measure`; None when none has that score."""
    best: BestEntry | None = None
    for each in published(metrics):
        score = each.hard if measure == "hard" else each.mixed
        if score is not None and (best is None or score > best.score):
            best = BestEntry(each.skills_version, each.prompts_version, score, each.epoch, each.measured_run_id)
    return best


def better(new: BestEntry | None, old: BestEntry | None) -> BestEntry | None:
    """`new` where it beats `old`; None when the old entry stays."""
    return new if new is not None and (old is None or new.score > old.score) else None


def epoch_scores(metrics: Sequence[DualMetric]) -> list[float]:
    """The hard score of the initial evaluation, then the best of each finished epoch, for early stopping."""
    by_epoch: dict[int, float] = {}
    for each in published(metrics):
        if each.hard is not None:
            by_epoch[each.epoch] = max(each.hard, by_epoch.get(each.epoch, 0.0))
    return [by_epoch[epoch] for epoch in sorted(by_epoch)]
