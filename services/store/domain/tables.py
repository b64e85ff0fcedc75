"""The tables of a workspace: natural keys and the orders in which they are listed.

A row is a mapping from column to plain value (text, number, bool, list of texts, None). The key makes a repeated write
replace its row instead of doubling it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_STEP = ("run_id", "epoch", "step")

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "manifest": ("name",),
    "versions": ("kind", "number"),
    "runs": ("run_id",),
    "predictions": ("run_id", "question_id"),
    "traces": ("run_id", "question_id", "step"),
    "gate_evidence": (*_STEP, "task_type", "ladder_rank"),
    "quadrant_pairs": (*_STEP, "task_type", "unit_id"),
    "step_reports": (*_STEP, "task_type"),
    "evolution_records": (*_STEP, "target"),
    "question_metrics": ("run_id", "question_id"),
    "span_evaluations": ("run_id", "question_id", "step"),
    "diagnosis_traces": ("run_id", "question_id", "stage"),
    "baseline_diagnosis": ("fingerprint",),
    "baseline_cache": ("task_type", "skill_sha256", "prompts_version", "unit_id"),
    "dual_metric": ("run_id", "epoch", "version_kind", "pool"),
    "holdout_eval": ("run_id", "skills_version", "prompts_version"),
    "holdout_lines": ("run_id", "epoch", "line"),
    "gate_pools": ("run_id", "unit_id"),
    "checkpoints": ("run_id",),
    "commits": ("run_id", "scope", "epoch", "step"),
    "llm_calls": ("call_id",),
}

STEP_DECISIONS: Final = ("gate_evidence", "quadrant_pairs", "step_reports", "evolution_records")
NUMBER_COLUMNS: Final = frozenset({"number", "epoch", "step", "ladder_rank"})


def key_types(order: tuple[str, ...]) -> tuple[type, ...]:
    """Return the type of each column of a key, as page tokens carry them."""
    return tuple(int if column in NUMBER_COLUMNS else str for column in order)
