"""The evidence an agent named, as the judge of its quality sees it (TRN-8): blind to right and wrong."""

from services.evolver.domain.case import NO_ANSWER, Case
from services.evolver.domain.outline import node_source
from services.evolver.domain.trace import shortened

NO_TREE = "(the question has no video; the reasoning is all there is)"
_NODE_CHARS = 1500
_MOST_NODES = 12


def quality_without_judge(case: Case) -> tuple[float, str] | None:
    """Return (quality, why) where no judge is needed: without an answer, or without evidence that exists, it is 0."""
    if case.prediction_text == NO_ANSWER:
        return 0.0, "no answer was submitted"
    if case.tree is not None and not any(node in case.tree.nodes for node in case.answered.evidence):
        return 0.0, "no node of the video was named as evidence"
    return None


def evidence_values(case: Case) -> dict[str, str]:
    """Return what fills the scoring template. Neither the gold answer nor whether the answer is right is among it."""
    return {
        "question": case.question.text,
        "options": case.options_text,
        "prediction": case.prediction_text,
        "reasoning": shortened(case.answered.reasoning, _NODE_CHARS) or "(none given)",
        "evidence": _evidence_text(case),
    }


def _evidence_text(case: Case) -> str:
    if case.tree is None:
        return NO_TREE
    lines = []
    for node_id in case.answered.evidence[:_MOST_NODES]:
        node = case.tree.nodes.get(node_id)
        text = shortened(node_source(node), _NODE_CHARS) if node else "(there is no such node)"
        lines.append(f'<node id="{node_id}">{text}</node>')
    return "\n".join(lines)
