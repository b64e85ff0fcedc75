"""The first stages of the waterfall: rules that need no judge."""

from services.evolver.domain.case import Case
from services.evolver.domain.diagnosis import Category, Cause, Explanation, Finding
from services.evolver.domain.metrics import informing_calls, repeat_visits, repeated_queries, searches
from services.evolver.domain.outline import node_notes

_WASTE_SHARE = 1 / 3


def format_or_budget(case: Case) -> Finding:
    """Explain an answer that is no option's letter, and a search that ran out of steps.

    Out of steps is a lapse when at least a third of the replies were wasted (repeated visits and queries, calls that
    could not be carried out), else a defect: the strategy needs more steps than there are.
    """
    wasted = repeat_visits(case) + repeated_queries(case) + sum(step.is_fault for step in case.trace)
    details = {"stop_reason": case.answered.stop_reason, "prediction": case.answered.prediction[:200], "wasted": wasted}
    explanation = None
    if case.answered.stop_reason == "budget_exceeded":
        explanation = _budget(case, wasted)
    elif not case.is_letter:
        explanation = Explanation(
            Category.FORMAT,
            Cause.LAPSE,
            f"The submitted answer is not the letter of an option: {case.answered.prediction[:120]!r}.",
            "Submit the letter of exactly one option as the answer, nothing else.",
        )
    return Finding("format_or_budget", explanation, details)


def _budget(case: Case, wasted: int) -> Explanation:
    replies = len(case.trace)
    if replies and wasted >= _WASTE_SHARE * replies:
        return Explanation(
            Category.BUDGET,
            Cause.LAPSE,
            f"The steps ran out, and {wasted} of {replies} replies were repeated visits or searches or faulty calls.",
            "Do not open a node twice or repeat a search; submit the best supported option before the last step.",
        )
    return Explanation(
        Category.BUDGET,
        Cause.DEFECT,
        f"The steps ran out after {case.answered.steps_used} calls, hardly any of them wasted: the way of searching "
        "takes more steps than there are.",
    )


def nothing_visited(case: Case) -> Finding:
    """Explain an answer that was given without one look at the video."""
    explanation = None
    calls = informing_calls(case)
    if case.tree is not None and case.trace and calls == 0:
        explanation = Explanation(
            Category.MISSED_NODES,
            Cause.LAPSE,
            "The agent answered without opening a single node or searching once.",
            "Look at the video before answering: search for the options or open the scene in question.",
        )
    looked = {"opened": node_notes(case, case.opened_nodes), "searches": searches(case)}
    return Finding("nothing_visited", explanation, {"informing_calls": calls, **looked})


RULES = (format_or_budget, nothing_visited)
