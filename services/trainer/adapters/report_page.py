"""The page about a run: one HTML file that asks for nothing from outside (TRN-13)."""

from __future__ import annotations

from pathlib import Path

import jinja2
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from services.trainer.adapters.report_edits import diff_lines, edit_view
from services.trainer.adapters.report_plots import accuracy_by_type, accuracy_curves, evidence_trajectories
from services.trainer.domain.best import published, reverted
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
        short=_in_short(report),
        curves=_plot("curves", accuracy_curves(report.metrics, report.holdout.holdout_lines)),
        types=None if by_type is None else _plot("types", by_type),
        trajectories=[
            _plot(f"gate-{index}", figure)
            for index, figure in enumerate(evidence_trajectories(report.steps, report.evidence).values())
        ],
        gates=gates,
        skips=[row for row in report.steps if row.report.n_planned == 0],
        accepted=[edit_view(report, row) for row in report.edits if row.record.status == "accepted"],
        refused=[edit_view(report, row) for row in report.edits if row.record.status == "rejected"],
        versions=[(each.version, diff_lines(each.diff)) for each in report.published],
        reverted=reverted(report.metrics),
    )


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
        "val_before": _percent(val[0].hard if val else None),
        "val_after": _percent(val[-1].hard if val else None),
        "test_before": _percent(first),
        "test_after": _percent(last),
    }


def _plot(name: str, figure: go.Figure) -> dict[str, str]:
    """A figure as the page embeds it; `</` is broken up so that no text can end the script."""
    return {"id": name, "json": str(figure.to_json()).replace("</", "<\\/")}


def _percent(value: float | None) -> str:
    return "not recorded" if value is None else f"{value:.1%}"


def _number(value: float | None) -> str:
    return "not recorded" if value is None else f"{value:.4g}"
