"""Evaluations on val and on the held-out test, and the running estimates of units."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DualMetric:
    """One evaluation of a version pair on a pool; epoch -1 is the initial one."""

    run_id: str
    epoch: int
    version_kind: str
    pool: str
    hard: float | None
    soft: float | None
    mixed: float | None
    skills_version: str
    prompts_version: str
    unit_count: int
    infra_count: int
    by_type_json: str
    measured_run_id: str


@dataclass(frozen=True, slots=True)
class HoldoutEval:
    """One evaluation on the held-out pool; `how` is intended, measured, derived or pointer."""

    run_id: str
    skills_version: str
    prompts_version: str
    accuracy: float | None
    right_count: int
    unit_count: int
    infra_count: int
    how: str
    measured_run_id: str
    epoch: int
    by_type_json: str = "{}"


@dataclass(frozen=True, slots=True)
class HoldoutRow:
    """One line of the held-out table of an epoch."""

    epoch: int
    line: str
    skills_version: str
    prompts_version: str
    accuracy: float | None
    how: str


@dataclass(frozen=True, slots=True)
class HoldoutTable:
    """All held-out evaluations of a run, and the lines of each epoch."""

    holdout_evals: tuple[HoldoutEval, ...]
    holdout_lines: tuple[HoldoutRow, ...]


@dataclass(frozen=True, slots=True)
class UnitObservation:
    """A unit's result observed in an epoch."""

    unit_id: str
    correct: bool


@dataclass(frozen=True, slots=True)
class UnitEstimate:
    """Running estimate of a unit's correctness."""

    unit_id: str
    estimate: float
    observation_count: int
    last_epoch: int
