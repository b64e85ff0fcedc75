"""Results per unit, from results per question (GAT-3). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from services.questions import Unit, fold

INFRA_STOP_REASONS = frozenset({"error", "parse_error"})


def unit_outcomes(units: Iterable[Unit], correct_by_question: Mapping[str, bool]) -> dict[str, bool]:
    """Right or wrong per unit; units with a question that has no result (not run, or INFRA) are left out."""
    outcomes: dict[str, bool] = {}
    for unit in units:
        known = {q: correct_by_question[q] for q in unit.question_ids if q in correct_by_question}
        if len(known) == len(unit.question_ids):
            outcomes[unit.unit_id] = fold(known)
    return outcomes


def share_right(outcomes: Mapping[str, bool]) -> float | None:
    """Share of units right, in [0, 1]; None when no unit has a result."""
    return sum(outcomes.values()) / len(outcomes) if outcomes else None


def share_right_by_type(units: Sequence[Unit], outcomes: Mapping[str, bool]) -> dict[str, float]:
    """Share of units right per task type, for the types that have a result."""
    by_type: dict[str, list[bool]] = {}
    for unit in units:
        if unit.unit_id in outcomes:
            by_type.setdefault(unit.task_type, []).append(outcomes[unit.unit_id])
    return {task_type: sum(right) / len(right) for task_type, right in sorted(by_type.items())}
