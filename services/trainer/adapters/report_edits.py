"""Edits as the page about a run shows them: the diff, the wrong answers behind it, the units that decided on it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, TypeAlias

from services.questions import Question
from services.skills import MARKERS
from services.trainer.domain.step_rows import EvolutionRecordRow, GateEvidence
from services.trainer.use_cases.gather_report import RunReport

_Gate: TypeAlias = tuple[int, int, str]
"""Epoch, step and task type."""

CATEGORIES: Mapping[str, str] = {
    "format": "the answer was not the letter of an option",
    "budget": "the steps ran out",
    "missed_nodes": "the deciding nodes were not looked at",
    "tool_incomplete": "a tool left out what mattered",
    "tool_hallucinated": "a tool told what was not there",
    "skill_not_followed": "the skill was right and was not followed",
    "skill_misleading": "the skill led astray",
    "skill_silent": "the skill says nothing of the case",
    "reasoning": "a mistake in reasoning about what was seen",
    "undetermined": "no cause found",
}
"""The categories of diagnosis in words."""
CAUSES: Mapping[str, str] = {
    "defect": "a defect of the skill, which an edit may mend",
    "lapse": "a lapse, which gets a reminder at most",
}
_TIERS: Mapping[str, str] = {"t2": "T2", "t1": "T1"}


class EditViews:
    """Makes what the page shows of each edit; the report's rows are looked through once and not for every edit."""

    def __init__(self, report: RunReport) -> None:
        self._report = report
        self._gates = {(each.epoch, each.step, each.report.task_type): each.report for each in report.steps}
        self._evidence: dict[_Gate, list[GateEvidence]] = defaultdict(list)
        for each in report.evidence:
            self._evidence[each.epoch, each.step, each.evidence.task_type].append(each.evidence)
        self._texts: dict[str, list[str]] = defaultdict(list)
        for question in report.questions.values():
            self._texts[question.unit_id].append(question.text)

    def view(self, row: EvolutionRecordRow) -> dict[str, Any]:
        """`named` are the wrong answers that the edit says it mends, `others` those seen too.

        Where the optimizer proposed nothing, the change consists of reminders, and the lapses stand for what it named.
        """
        outcomes = json.loads(row.record.edits_json or "[]")
        named = {question for each in outcomes for question in each["edit"]["cases"]}
        cases = [_case(self._report, row, case) for case in json.loads(row.record.cases_json or "[]")]
        if not outcomes:
            named = {case["question_id"] for case in cases if case["cause"] == "lapse"}
        gate = (row.epoch, row.step, row.record.task_type)
        # The units that the edit won and lost in its gate, in the order in which they were counted.
        counted = self._evidence.get(gate, [])
        return {
            "row": row,
            "gate": self._gates.get(gate),
            "wins": [self._unit(each) for each in counted if each.cand_correct and not each.base_correct],
            "losses": [self._unit(each) for each in counted if each.base_correct and not each.cand_correct],
            "named": [case for case in cases if case["question_id"] in named],
            "others": [case for case in cases if case["question_id"] not in named],
            "diff": diff_lines(row.record.unified_diff),
            "reminds": _reminds(row.record.unified_diff),
            "reasons": json.loads(row.record.rejections_json or "[]"),
            "parts": [_part(each) for each in outcomes],
        }

    def _unit(self, evidence: GateEvidence) -> tuple[str, str]:
        """A unit and its questions, as text."""
        return evidence.unit_id, " / ".join(self._texts.get(evidence.unit_id, ()))


def _reminds(diff: str) -> bool:
    """Whether the diff adds a line between the marks of the APPENDIX."""
    start, end = MARKERS[:2]
    inside = diff.partition(f" {start}\n")[2].partition(f" {end}\n")[0]
    return any(line.startswith("+") for line in inside.splitlines())


def _part(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """One edit of a proposal: what became of it, why it was proposed, which questions it answers."""
    edit = outcome["edit"]
    return {
        "text": edit["content"] or edit["target"],
        "op": edit["op"],
        "status": outcome.get("status", ""),
        "reason": outcome.get("reason", ""),
        "rationale": edit["rationale"],
        "cases": edit["cases"],
    }


def diff_lines(diff: str) -> list[tuple[str, str]]:
    """The lines of a unified diff, each with its kind: mark, added, removed or same."""
    return [(_line_kind(line), line) for line in diff.splitlines()]


def _case(report: RunReport, row: EvolutionRecordRow, case: dict[str, Any]) -> dict[str, Any]:
    """A diagnosed answer: `given` and `right` are options with their letters, None where the answer isn't known."""
    question = report.questions.get(case["question_id"])
    answer = report.answers.get((row.epoch, row.step, case["question_id"]))
    return {
        **case,
        "cause_in_words": CAUSES.get(case["cause"], case["cause"]),
        "tier_name": _TIERS.get(case["tier"], case["tier"]),
        "category_in_words": CATEGORIES.get(case["category"], case["category"]),
        "question": question.text if question else "",
        "options": [] if question is None else [_option(question, letter) for letter in question.letters],
        "given": None if answer is None or question is None else _option(question, answer.prediction),
        "right": None if question is None else _option(question, question.answer),
        **_looked(case.get("evidence", {})),
    }


def _looked(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Where the agent looked and what it missed; None where the diagnosis did not say."""
    return {
        "opened": evidence.get("nothing_visited", {}).get("opened"),
        "searches": evidence.get("nothing_visited", {}).get("searches"),
        "missed": evidence.get("evidence", {}).get("missed"),
        "quote": evidence.get("skill", {}).get("quote", ""),
    }


def _option(question: Question, letter: str) -> str:
    if letter and letter in question.letters:
        return f"{letter}. {question.options[question.letters.index(letter)]}"
    return letter or "no answer"


def _line_kind(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return "mark"
    return {"+": "added", "-": "removed"}.get(line[:1], "same")
