"""The page about a run: one HTML file that asks for nothing from outside (TRN-13)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jinja2
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from services.trainer.adapters.report_plots import accuracy_by_type, accuracy_curves, evidence_trajectories
from services.trainer.domain.step_rows import EvolutionRecord, EvolutionRecordRow, StepReport
from services.trainer.use_cases.gather_report import RunReport

_TEMPLATES = Path(__file__).parent / "pages"


def render_report(report: RunReport) -> str:
    """The whole page. Everything that came from a model or a file is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["percent"] = _percent
    environment.filters["number"] = _number
    by_type = accuracy_by_type(report.metrics)
    gates = [row for row in report.steps if row.report.n_planned > 0]
    return environment.get_template("report.html.jinja").render(
        report=report,
        plotly_js=get_plotlyjs(),
        curves=_plot("curves", accuracy_curves(report.metrics, report.holdout.holdout_lines)),
        types=None if by_type is None else _plot("types", by_type),
        trajectories=[
            _plot(f"gate-{index}", figure)
            for index, figure in enumerate(evidence_trajectories(report.steps, report.evidence).values())
        ],
        gates=gates,
        skips=[row for row in report.steps if row.report.n_planned == 0],
        accepted=[_edit(report, row) for row in report.edits if row.record.status == "accepted"],
        refused=[_edit(report, row) for row in report.edits if row.record.status == "rejected"],
    )


def _plot(name: str, figure: go.Figure) -> dict[str, str]:
    """A figure as the page embeds it; `</` is broken up so that no text can end the script."""
    return {"id": name, "json": str(figure.to_json()).replace("</", "<\\/")}


def _edit(report: RunReport, row: EvolutionRecordRow) -> dict[str, Any]:
    gate = next((each.report for each in report.steps if _same(each.epoch, each.step, each.report, row)), None)
    return {
        "row": row,
        "gate": gate,
        "gate_figures": None if gate is None else asdict(gate),
        "cases": [{**case, "question": report.questions.get(case["question_id"], "")} for case in _cases(row.record)],
        "diff": [(_line_kind(line), line) for line in row.record.unified_diff.splitlines()],
        "reasons": json.loads(row.record.rejections_json or "[]"),
        "rationales": [each["edit"]["rationale"] for each in json.loads(row.record.edits_json or "[]")],
    }


def _same(epoch: int, step: int, report: StepReport, row: EvolutionRecordRow) -> bool:
    return (epoch, step, report.task_type) == (row.epoch, row.step, row.record.task_type)


def _cases(record: EvolutionRecord) -> Sequence[dict[str, str]]:
    cases: Sequence[dict[str, str]] = json.loads(record.cases_json or "[]")
    return cases


def _line_kind(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return "mark"
    return {"+": "added", "-": "removed"}.get(line[:1], "same")


def _percent(value: float | None) -> str:
    return "not recorded" if value is None else f"{value:.1%}"


def _number(value: float | None) -> str:
    return "not recorded" if value is None else f"{value:.4g}"
