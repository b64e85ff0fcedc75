"""The page about a run: one HTML file that asks for nothing from outside (TRN-13)."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from services.trainer.adapters.page_templates import embedded_figure, page_template, percent
from services.trainer.adapters.report_edits import CATEGORIES, EditViews, diff_lines
from services.trainer.adapters.report_plots import accuracy_by_type, accuracy_curves, evidence_trajectories
from services.trainer.domain.best import published, reverted
from services.trainer.domain.step_rows import EvolutionRecordRow
from services.trainer.use_cases.gather_report import RunReport

_TIERS = ("T2", "T1", "uncertain")


def render_report(report: RunReport) -> str:
    """The whole page. Everything that came from a model or a file is escaped."""
    by_type, edits = accuracy_by_type(report.metrics), EditViews(report)
    gates = [row for row in report.steps if row.report.n_planned > 0]
    return page_template("report.html.jinja").render(
        report=report,
        short=_in_short(report),
        curves=embedded_figure("curves", accuracy_curves(report.metrics, report.holdout.holdout_lines)),
        types=None if by_type is None else embedded_figure("types", by_type),
        trajectories=[
            embedded_figure(f"gate-{index}", figure)
            for index, figure in enumerate(evidence_trajectories(report.steps, report.evidence).values())
        ],
        gates=gates,
        skips=[row for row in report.steps if row.report.n_planned == 0],
        accepted=[edits.view(row) for row in report.edits if row.record.status == "accepted"],
        refused=[edits.view(row) for row in report.edits if row.record.status == "rejected"],
        reviews=_reviews(report),
        diagnoses=_diagnoses(report),
        versions=[(each.version, diff_lines(each.diff)) for each in report.published],
        reverted=reverted(report.metrics),
    )


def _reviews(report: RunReport) -> list[tuple[EvolutionRecordRow, list[str]]]:
    """The reviews of provisional accepts, each with what it says; an epoch's end has records and no step report."""
    steps = {(row.epoch, row.step) for row in report.steps}
    ends = [row for row in report.edits if (row.epoch, row.step) not in steps]
    return [(row, json.loads(row.record.rejections_json)) for row in ends]


def _diagnoses(report: RunReport) -> list[dict[str, Any]]:
    """How many wrong answers of the baseline have each category, the most frequent first."""
    counts = Counter((each.category, each.tier) for each in report.diagnoses)
    rows = [
        {
            "category": category,
            "words": CATEGORIES.get(category, category),
            "tiers": {tier: counts[category, tier] for tier in _TIERS},
        }
        for category in {name for name, _ in counts}
    ]
    return sorted(rows, key=lambda row: (-sum(row["tiers"].values()), row["category"]))


def _in_short(report: RunReport) -> dict[str, str | int]:
    """The figures at the top of the page."""
    decisions = [row.report.gate_action for row in report.steps if row.report.n_planned > 0]
    val = published(report.metrics)
    lines = report.holdout.holdout_lines
    first = next((line.accuracy for line in lines if line.line == "baseline"), None)
    last = next((line.accuracy for line in reversed(lines) if line.line == "final"), None)
    return {
        "judged": len(decisions),
        "confirmed": decisions.count("ACCEPT_CONFIRMED"),
        "provisional": decisions.count("ACCEPT_PROVISIONAL"),
        "val_before": percent(val[0].hard if val else None),
        "val_after": percent(val[-1].hard if val else None),
        "test_before": percent(first),
        "test_after": percent(last),
    }
