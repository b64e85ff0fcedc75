"""Figures about how one question was worked on. A figure that isn't defined for a case is absent, never 0."""

import re
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from services.evolver.domain.case import Case

_INFORMING = ("view_node", "search_similar", "observe_frame")
_DOUBT = re.compile(
    r"\b(?:might|maybe|perhaps|probably|possibly|likely|unclear|unsure|uncertain|not sure|guess(?:ing)?|assum\w+"
    r"|seems?)\b",
    re.IGNORECASE,
)
_DOUBTFUL, _SURE = 0.5, 1.0


def question_metrics(case: Case) -> dict[str, Any]:
    """Return the metrics of a case by name.

    format_compliance      share of the agent's replies that could be read and carried out
    steps_used             successful tool calls
    budget_use             steps used / step limit, where the limit is known
    repeat_visits          times a node was opened that had been opened before
    repeated_queries       searches whose words were searched before
    level_jumps            moves between opened nodes that are more than one level of the tree apart
    tool_use               successful calls by tool
    confidence             as submitted, or 0.5 where the reasoning voices doubt and 1 where it doesn't
    calibration_error      (confidence - correct)^2, the Brier score of this one answer
    """
    metrics = {
        "format_compliance": _format_compliance(case),
        "steps_used": case.answered.steps_used,
        "budget_use": case.answered.steps_used / case.max_steps if case.max_steps else None,
        "repeat_visits": repeat_visits(case),
        "repeated_queries": repeated_queries(case),
        "level_jumps": _level_jumps(case),
        "tool_use": dict(Counter(step.tool for step in case.trace if not step.is_fault)) if case.trace else None,
        **_confidence(case),
    }
    return {name: value for name, value in metrics.items() if value is not None}


def informing_calls(case: Case) -> int:
    """Return how many calls told the agent anything about the video."""
    return sum(step.tool in _INFORMING and not step.is_fault for step in case.trace)


def searches(case: Case) -> list[str]:
    """Return the words of each search that was carried out, in order."""
    queries = [step.args.get("query") for step in case.trace if step.tool == "search_similar" and not step.is_fault]
    return [query for query in queries if isinstance(query, str)]


def repeat_visits(case: Case) -> int:
    """Return how often a node was opened again."""
    return len(case.opened_nodes) - len(set(case.opened_nodes))


def repeated_queries(case: Case) -> int:
    """Return how often a search was repeated, case and order of words aside."""
    queries = [
        " ".join(sorted(str(step.args.get("query", "")).casefold().split()))
        for step in case.trace
        if step.tool == "search_similar" and not step.is_fault
    ]
    return len(queries) - len(set(queries))


def _format_compliance(case: Case) -> float | None:
    if not case.trace:
        return None
    return sum(not step.is_fault for step in case.trace) / len(case.trace)


def _level_jumps(case: Case) -> int | None:
    if case.tree is None:
        return None
    levels = [case.tree.nodes[node].level for node in case.opened_nodes if node in case.tree.nodes]
    return sum(abs(after - before) > 1 for before, after in pairwise(levels))


def _confidence(case: Case) -> Mapping[str, float]:
    if case.answered.stop_reason != "finished":
        return {}
    confidence = _stated_confidence(case)
    if confidence is None and not case.answered.reasoning:
        return {}
    if confidence is None:
        confidence = _DOUBTFUL if _DOUBT.search(case.answered.reasoning) else _SURE
    return {"confidence": confidence, "calibration_error": (confidence - case.answered.correct) ** 2}


def _stated_confidence(case: Case) -> float | None:
    submitted = case.trace[-1].args.get("confidence") if case.trace else None
    if isinstance(submitted, bool) or not isinstance(submitted, int | float):
        return None
    return float(submitted) if 0 <= submitted <= 1 else None
