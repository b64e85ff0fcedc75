"""The plots of the page about a run, as plotly figures without colours of their own background."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from services.trainer.domain.best import published
from services.trainer.domain.evaluations import DualMetric, HoldoutRow
from services.trainer.domain.step_rows import GateEvidenceRow, StepReportRow

_HEIGHT = 320
_LEGEND_LINE = 20
_LOG_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_ACCEPTED = {"color": "#2e9e5b", "width": 3}
_REJECTED = {"width": 1}
_BOUND = "#8a94a3"


def accuracy_curves(metrics: Sequence[DualMetric], lines: Sequence[HoldoutRow]) -> go.Figure:
    """Val accuracy per evaluation and held-out accuracy per epoch; the best val figure is marked as optimistic."""
    figure = _figure("Accuracy per version", "evaluation", "share of units right")
    val = [each for each in published(metrics) if each.hard is not None]
    figure.add_scatter(
        x=[_moment(each.epoch, each.version_kind) for each in val],
        y=[each.hard for each in val],
        text=[each.skills_version for each in val],
        mode="lines+markers+text",
        textposition="top center",
        name="val",
    )
    if val:
        best = max(val, key=lambda each: each.hard or 0.0)
        figure.add_scatter(
            x=[_moment(best.epoch, best.version_kind)],
            y=[best.hard],
            mode="markers",
            marker={"symbol": "star", "size": 15},
            name="best val (chosen among several: optimistic)",
        )
    final = [line for line in lines if line.line == "final" and line.accuracy is not None]
    baseline = next((line for line in lines if line.line == "baseline" and line.accuracy is not None), None)
    points = [("start", baseline)] if baseline is not None else []
    points += [(_moment(line.epoch, "final"), line) for line in final]
    figure.add_scatter(
        x=[moment for moment, _ in points],
        y=[line.accuracy for _, line in points],
        text=[line.skills_version for _, line in points],
        mode="lines+markers",
        name="held-out test (the honest figure)",
    )
    figure.update_yaxes(range=[0, 1.1], tickformat=".0%")
    return figure


def evidence_trajectories(
    steps: Sequence[StepReportRow], evidence: Sequence[GateEvidenceRow]
) -> dict[str, dict[str, Any]]:
    """Per task type, the evidence of each of its gates unit by unit, with the two bounds.

    The paths are plain: plotly's objects would check every one of them, some thirty milliseconds a gate.
    """
    paths: dict[tuple[str, int, int], list[GateEvidenceRow]] = defaultdict(list)
    for row in evidence:
        paths[row.evidence.task_type, row.epoch, row.step].append(row)
    figures: dict[str, dict[str, Any]] = {}
    for step in steps:
        report = step.report
        path = paths.get((report.task_type, step.epoch, step.step))
        if not path:
            continue
        if report.task_type not in figures:
            figures[report.task_type] = _evidence_figure(report.task_type, report.verdict_json).to_dict()
        figures[report.task_type]["data"].append(_path(step, path))
    for figure in figures.values():
        figure["layout"]["height"] = _HEIGHT + _LEGEND_LINE * len(figure["data"])
    return dict(sorted(figures.items()))


def _path(step: StepReportRow, path: Sequence[GateEvidenceRow]) -> dict[str, Any]:
    rows = [row.evidence for row in path]
    return {
        "type": "scatter",
        "x": list(range(len(rows) + 1)),
        "y": [1.0, *(row.e_value for row in rows)],
        "text": ["start", *(f"{row.unit_id}: W {row.w}, L {row.l}" for row in rows)],
        "mode": "lines+markers",
        "line": {"shape": "hv", **(_ACCEPTED if step.report.gate_action.startswith("ACCEPT") else _REJECTED)},
        "marker": {"size": 4},
        "name": f"epoch {step.epoch} step {step.step}: {step.report.gate_action}",
    }


def accuracy_by_type(metrics: Sequence[DualMetric]) -> go.Figure | None:
    """Val accuracy per task type at the start and at the end; None before the first evaluation."""
    known = published(metrics)
    if not known:
        return None
    figure = _figure("Val accuracy per task type", "", "share of units right")
    for name, metric in (("start", known[0]), ("end", known[-1])):
        counts: Mapping[str, Sequence[int]] = json.loads(metric.by_type_json or "{}")
        types = sorted(task_type for task_type, (_, measured) in counts.items() if measured)
        figure.add_bar(
            x=types,
            y=[counts[task_type][0] / counts[task_type][1] for task_type in types],
            text=[f"{counts[task_type][0]}/{counts[task_type][1]}" for task_type in types],
            name=f"{name} ({metric.skills_version})",
        )
    figure.update_yaxes(range=[0, 1.1], tickformat=".0%")
    return figure


def _evidence_figure(task_type: str, verdict_json: str) -> go.Figure:
    figure = _figure(task_type, "units consumed", "evidence E (log)")
    figure.update_yaxes(type="log", tickvals=_LOG_TICKS)
    parameters = json.loads(verdict_json).get("parameters", {}) if verdict_json else {}
    for name in ("e_confirm", "e_provisional"):
        if name in parameters:
            figure.add_hline(y=parameters[name], line_dash="dot", line_width=1, line_color=_BOUND)
            # On a log axis an annotation's y is the exponent, a line's y the value itself.
            figure.add_annotation(
                x=1,
                xref="paper",
                xanchor="right",
                y=math.log10(parameters[name]),
                yshift=8,
                showarrow=False,
                text=f"{name} {parameters[name]:g}",
            )
    return figure


def _figure(title: str, x_title: str, y_title: str) -> go.Figure:
    return go.Figure(
        layout={
            "title": {"text": title, "font": {"size": 15}},
            "height": _HEIGHT,
            "margin": {"l": 60, "r": 20, "t": 50, "b": 45},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "xaxis": {"title": x_title},
            "yaxis": {"title": y_title},
            "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
        }
    )


def _moment(epoch: int, kind: str) -> str:
    if epoch < 0:
        return "start"
    return f"epoch {epoch}" if kind == "final" else f"epoch {epoch} slow update"
