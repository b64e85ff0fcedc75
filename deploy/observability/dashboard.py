"""Writes Grafana's dashboard: `python deploy/observability/dashboard.py` (panels are data here, JSON there)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent / "grafana" / "dashboards" / "videotree.json"
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 24

# Title, unit, and the queries with their legends.
PANELS: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("Services up", "short", [('up{job="videotree"}', "{{service}}")]),
    (
        "Calls per second",
        "reqps",
        [("sum by (service, code) (rate(videotree_grpc_calls_total[1m]))", "{{service}} {{code}}")],
    ),
    (
        "Call latency, 95th percentile",
        "s",
        [
            (
                "histogram_quantile(0.95, sum by (service, le) (rate(videotree_grpc_call_seconds_bucket[5m])))",
                "{{service}}",
            )
        ],
    ),
    (
        "Store latency by method, 95th percentile",
        "s",
        [
            (
                "histogram_quantile(0.95, sum by (method, le) "
                '(rate(videotree_grpc_call_seconds_bucket{service="store"}[5m])))',
                "{{method}}",
            )
        ],
    ),
    ("Calls in flight", "short", [("sum by (service) (videotree_grpc_calls_in_flight)", "{{service}}")]),
    (
        "Model calls per second by outcome",
        "reqps",
        [("sum by (role, outcome) (rate(videotree_model_calls_total[1m]))", "{{role}} {{outcome}}")],
    ),
    (
        "Model calls answered from the cache",
        "percentunit",
        [
            (
                'sum(rate(videotree_model_calls_total{cache_status="hit"}[5m]))'
                " / sum(rate(videotree_model_calls_total[5m]))",
                "share",
            )
        ],
    ),
    (
        "Time to the first token, median and 95th percentile",
        "s",
        [
            (
                f"histogram_quantile({q}, sum by (role, le) (rate(videotree_model_first_token_seconds_bucket[5m])))",
                f"{{{{role}}}} {q}",
            )
            for q in (0.5, 0.95)
        ],
    ),
    (
        "Attempts at endpoints by outcome",
        "reqps",
        [("sum by (endpoint, outcome) (rate(videotree_model_attempts_total[1m]))", "{{endpoint}} {{outcome}}")],
    ),
    (
        "Breakers that are not closed",
        "short",
        [('sum by (endpoint, state) (videotree_endpoint_breaker{state!="closed"})', "{{endpoint}} {{state}}")],
    ),
    (
        "Attempts in flight and calls that wait",
        "short",
        [
            ("sum by (endpoint) (videotree_endpoint_attempts_in_flight)", "{{endpoint}} in flight"),
            ("sum by (endpoint) (videotree_endpoint_calls_waiting)", "{{endpoint}} waiting"),
        ],
    ),
    (
        "Tokens per second",
        "short",
        [("sum by (role, kind) (rate(videotree_model_tokens_total[1m]))", "{{role}} {{kind}}")],
    ),
    (
        "Gate arms per second",
        "short",
        [("sum by (arm, result) (rate(videotree_gate_arms_total[1m]))", "{{arm}} {{result}}")],
    ),
    (
        "Gate progress: share of the ladder counted",
        "percentunit",
        [("videotree_gate_units_used / videotree_gate_units_planned", "{{workspace}} {{task_type}}")],
    ),
    ("Gate evidence: log10 of E", "none", [("videotree_gate_log10_e", "{{workspace}} {{task_type}}")]),
    ("Gate verdicts", "short", [("sum by (decision) (videotree_gate_verdicts_total)", "{{decision}}")]),
    ("Resident memory", "bytes", [('process_resident_memory_bytes{job="videotree"}', "{{service}}")]),
]


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana reads it."""
    return {
        "uid": "videotree",
        "title": "videotree",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "panels": [_panel(number, *panel) for number, panel in enumerate(PANELS)],
    }


def _panel(number: int, title: str, unit: str, queries: list[tuple[str, str]]) -> dict[str, Any]:
    per_row = _COLUMNS // _WIDTH
    datasource = {"type": "prometheus", "uid": "prometheus"}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": datasource,
        "gridPos": {
            "x": number % per_row * _WIDTH,
            "y": number // per_row * _HEIGHT,
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": unit} if unit == "none" else {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": datasource, "expr": expression, "legendFormat": legend}
            for place, (expression, legend) in enumerate(queries)
        ],
    }


def text() -> str:
    """The dashboard's JSON text."""
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    OUT.write_text(text(), encoding="utf-8")
