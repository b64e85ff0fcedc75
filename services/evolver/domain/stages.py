"""The stages of the waterfall that ask the judge: what each is shown, and how its answer is read.

An answer may only accuse what is there: node ids of the tree, numbers of the steps shown, passages of the skill. One
that names anything else is a fault and is sent back, never taken for a finding.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from services.evolver.domain.case import Case
from services.evolver.domain.diagnosis import Category, Cause, Explanation, Finding
from services.evolver.domain.errors import AnswerFault
from services.evolver.domain.outline import node_notes, node_source, tree_outline, visited_text, was_seen
from services.evolver.domain.trace import shortened, trace_text

_SOURCE_CHARS = 4000


@dataclass(frozen=True, slots=True)
class Bounds:
    """Upper bounds, in tokens as `estimate_tokens` counts, of what a judge is shown."""

    trace_tokens: int = 12_000
    tree_tokens: int = 8_000


@dataclass(frozen=True, slots=True)
class JudgeStage:
    """One question to the judge.

    `values` returns what fills the template, or None where the stage does not apply to the case. `read` turns an answer
    that fits the template's schema into a finding; it raises AnswerFault for one that names what isn't there.
    """

    name: str
    template: str
    values: Callable[[Case, Bounds], dict[str, str] | None]
    read: Callable[[Case, Mapping[str, Any]], Finding]


def _question(case: Case) -> dict[str, str]:
    return {
        "question": case.question.text,
        "options": case.options_text,
        "gold_answer": case.gold_text,
        "prediction": case.prediction_text,
    }


def _evidence_values(case: Case, bounds: Bounds) -> dict[str, str] | None:
    if case.tree is None or not case.trace:
        return None
    outline = tree_outline(case.tree, bounds.tree_tokens)
    return {**_question(case), "skill": case.skill_body, "tree": outline, "visited": visited_text(case)}


def _read_evidence(case: Case, answer: Mapping[str, Any]) -> Finding:
    nodes = case.tree.nodes if case.tree else {}
    unknown = [node for node in answer["needed_nodes"] if node not in nodes]
    if unknown:
        raise AnswerFault([f"needed_nodes: there is no node {node!r} in the tree" for node in unknown])
    missed = [node for node in answer["needed_nodes"] if not was_seen(case, nodes[node])]
    cause = Cause.LAPSE if answer["skill_directs_there"] else Cause.DEFECT
    reminder = answer["reminder"] if cause is Cause.LAPSE else ""
    explanation = Explanation(Category.MISSED_NODES, cause, answer["why"], reminder) if missed else None
    details = {**_kept(answer), "missed_nodes": missed, "missed": node_notes(case, missed)}
    return Finding("evidence", explanation, details)


def condensed_steps(case: Case) -> list[tuple[int, str, str]]:
    """Return (step, source, output) of each look at a node whose output does not hold the node's own text as it is."""
    found = []
    for step in case.trace:
        known = [case.tree.nodes[node] for node in step.opened_nodes if case.tree and node in case.tree.nodes]
        source = "\n\n".join(f"{node.node_id}: {node_source(node)}" for node in known)
        shown = " ".join(step.output.split())
        if known and not all(" ".join(node.text.split()) in shown for node in known):
            found.append((step.step, source, step.output))
    return found


def _tool_values(case: Case, bounds: Bounds) -> dict[str, str] | None:
    steps = condensed_steps(case)
    if not steps:
        return None
    most = max(400, min(_SOURCE_CHARS, bounds.trace_tokens * 3 // (2 * len(steps))))
    observations = "\n".join(
        f'<step n="{number}">\n<source>{shortened(source, most)}</source>\n'
        f"<output>{shortened(output, most)}</output>\n</step>"
        for number, source, output in steps
    )
    return {**_question(case), "observations": observations}


def _read_tool(case: Case, answer: Mapping[str, Any]) -> Finding:
    verdicts = {entry["step"]: entry for entry in answer["steps"]}
    shown = {number for number, _, _ in condensed_steps(case)}
    faults = [f"steps: step {number} was not shown" for number in sorted(verdicts.keys() - shown)]
    faults += [f"steps: step {number} has no verdict" for number in sorted(shown - verdicts.keys())]
    cause = answer["cause_step"]
    if cause is not None and verdicts.get(cause, {"verdict": "faithful"})["verdict"] == "faithful":
        faults.append(f"cause_step: {cause} is no step that was called incomplete or hallucinated")
    if faults:
        raise AnswerFault(faults)
    spans = {number: {"verdict": entry["verdict"], "detail": entry["detail"]} for number, entry in verdicts.items()}
    explanation = None
    if cause is not None:
        invented = verdicts[cause]["verdict"] == "hallucinated"
        category = Category.TOOL_HALLUCINATED if invented else Category.TOOL_INCOMPLETE
        explanation = Explanation(category, Cause.LAPSE, answer["why"], answer["reminder"])
    return Finding("tool_output", explanation, {"cause_step": cause, "why": answer["why"]}, spans)


_SKILL_VERDICTS = {
    "not_followed": (Category.SKILL_NOT_FOLLOWED, Cause.LAPSE),
    "misleading": (Category.SKILL_MISLEADING, Cause.DEFECT),
    "silent": (Category.SKILL_SILENT, Cause.DEFECT),
}


def _skill_values(case: Case, bounds: Bounds) -> dict[str, str] | None:
    if not case.skill_body:
        return None
    return {**_question(case), "skill": case.skill_body, "trace": trace_text(case.trace, bounds.trace_tokens)[0]}


def _read_skill(case: Case, answer: Mapping[str, Any]) -> Finding:
    verdict, quote = answer["verdict"], " ".join(answer["quote"].split())
    accuses_passage = verdict in ("not_followed", "misleading")
    if accuses_passage and not quote:
        raise AnswerFault([f"quote: {verdict} needs the instruction of the skill that it speaks of"])
    if accuses_passage and quote not in " ".join(case.skill_body.split()):
        raise AnswerFault(
            [f"quote: the skill does not say {answer['quote']!r}; copy the passage character for character"]
        )
    explanation = None
    if verdict in _SKILL_VERDICTS:
        category, cause = _SKILL_VERDICTS[verdict]
        explanation = Explanation(category, cause, answer["why"], answer["reminder"] if cause is Cause.LAPSE else "")
    return Finding("skill", explanation, _kept(answer))


def _reasoning_values(case: Case, bounds: Bounds) -> dict[str, str] | None:
    return {**_question(case), "trace": trace_text(case.trace, bounds.trace_tokens)[0]}


def _read_reasoning(case: Case, answer: Mapping[str, Any]) -> Finding:
    explanation = None
    if answer["type"] != "none":
        explanation = Explanation(Category.REASONING, Cause.LAPSE, answer["why"], answer["reminder"])
    return Finding("reasoning", explanation, _kept(answer))


def _kept(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "reminder"}


JUDGE_STAGES = (
    JudgeStage("evidence", "diagnose.evidence", _evidence_values, _read_evidence),
    JudgeStage("tool_output", "diagnose.tool_output", _tool_values, _read_tool),
    JudgeStage("skill", "diagnose.skill", _skill_values, _read_skill),
    JudgeStage("reasoning", "diagnose.reasoning", _reasoning_values, _read_reasoning),
)
