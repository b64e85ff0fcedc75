"""Edits as the page about a run shows them: the diff, the wrong answers behind it, the units that decided on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from services.questions import Question
from services.trainer.domain.step_rows import EvolutionRecordRow, StepReport
from services.trainer.use_cases.gather_report import RunReport


def edit_view(report: RunReport, row: EvolutionRecordRow) -> dict[str, Any]:
    """What the page shows of one edit."""
    edits = [each["edit"] for each in json.loads(row.record.edits_json or "[]")]
    cited = {question for edit in edits for question in edit["cases"]}
    wins, losses = _deciding_units(report, row)
    return {
        "row": row,
        "gate": next((each.report for each in report.steps if _same(each.epoch, each.step, each.report, row)), None),
        "wins": wins,
        "losses": losses,
        "cases": [_case(report, row, case, cited) for case in json.loads(row.record.cases_json or "[]")],
        "diff": diff_lines(row.record.unified_diff),
        "reasons": json.loads(row.record.rejections_json or "[]"),
        "rationales": [edit["rationale"] for edit in edits],
    }


def diff_lines(diff: str) -> list[tuple[str, str]]:
    """The lines of a unified diff, each with its kind: mark, added, removed or same."""
    return [(_line_kind(line), line) for line in diff.splitlines()]


def _case(report: RunReport, row: EvolutionRecordRow, case: dict[str, str], cited: set[str]) -> dict[str, Any]:
    """A diagnosed answer: `given` and `right` are options with their letters, None where the answer isn't known."""
    question = report.questions.get(case["question_id"])
    answer = report.answers.get((row.epoch, row.step, case["question_id"]))
    return {
        **case,
        "question": question.text if question else "",
        "given": None if answer is None or question is None else _option(question, answer.prediction),
        "right": None if question is None else _option(question, question.answer),
        "cited": case["question_id"] in cited,
    }


def _option(question: Question, letter: str) -> str:
    if letter and letter in question.letters:
        return f"{letter}. {question.options[question.letters.index(letter)]}"
    return letter or "no answer"


def _deciding_units(report: RunReport, row: EvolutionRecordRow) -> tuple[Sequence[str], Sequence[str]]:
    """The units that the edit won and lost in its gate, in the order in which they were counted."""
    counted = [
        each.evidence
        for each in report.evidence
        if (each.epoch, each.step, each.evidence.task_type) == (row.epoch, row.step, row.record.task_type)
    ]
    wins = [each.unit_id for each in counted if each.cand_correct and not each.base_correct]
    return wins, [each.unit_id for each in counted if each.base_correct and not each.cand_correct]


def _same(epoch: int, step: int, report: StepReport, row: EvolutionRecordRow) -> bool:
    return (epoch, step, report.task_type) == (row.epoch, row.step, row.record.task_type)


def _line_kind(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return "mark"
    return {"+": "added", "-": "removed"}.get(line[:1], "same")
