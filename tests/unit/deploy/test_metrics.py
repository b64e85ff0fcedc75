"""The dashboard and the guide speak of the metrics that the services export, with their labels."""

from __future__ import annotations

import importlib
import json
import re
from functools import cache
from pathlib import Path

import pytest

from services.runtime.metrics import REGISTRY

ROOT = Path(__file__).resolve().parents[3]
SERVICES = ("store", "inference", "gate", "evolver")
DASHBOARD = ROOT / "deploy" / "observability" / "grafana" / "dashboards" / "videotree.json"
# Labels that Prometheus adds to whatever it scrapes, and that of a histogram's buckets.
ADDED = {"service", "job", "instance", "le"}


@cache
def exported() -> dict[str, tuple[str, ...]]:
    """The labels of each series by name, as all services' metrics pages show them; histograms under their base name."""
    for service in SERVICES:
        importlib.import_module(f"services.{service}.main")
    found = {}
    for collector in list(REGISTRY._collector_to_names):
        for family in collector.describe() if hasattr(collector, "describe") else []:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            if name.startswith("videotree_"):
                found[name] = tuple(collector._labelnames)
    return found


def queries() -> list[str]:
    """Every query of the dashboard."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_dep_1_the_dashboard_asks_for_series_that_a_service_exports() -> None:
    asked = {name for query in queries() for name in re.findall(r"videotree_[a-z0-9_]+", query)}
    assert len(asked) > 10
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked} <= set(exported())


@pytest.mark.parametrize("query", queries())
def test_dep_1_the_dashboard_groups_by_labels_that_the_series_has(query: str) -> None:
    names = [re.sub(r"_bucket$", "", name) for name in re.findall(r"videotree_[a-z0-9_]+", query)]
    asked = {label for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(", ")}
    asked |= set(re.findall(r"[{,](\w+)!?=", query))
    for name in names:
        assert asked <= {*exported()[name], *ADDED}, name


@pytest.mark.parametrize(
    "subject", ["model_calls_total", 'cache_status="hit"', "breaker", "units_used", "log10_e", 'service="store"']
)
def test_dep_1_the_dashboard_shows_what_an_operator_asks_for(subject: str) -> None:
    assert any(subject in query for query in queries())


def test_the_guide_lists_every_metric_with_its_labels() -> None:
    guide = (ROOT / "docs" / "guide" / "operations.md").read_text(encoding="utf-8")
    listed = {
        name: tuple(re.findall(r"`(\w+)`", labels))
        for name, labels in re.findall(r"^\| `(videotree_\w+)` \| ([^|]*) \|", guide, re.MULTILINE)
    }
    assert listed == exported()
