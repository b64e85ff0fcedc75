"""A round shows how far it has come while it runs, and only then."""

from __future__ import annotations

import math

import pytest

from services.gate.domain.prefix import EvidenceRow
from services.gate.domain.round_events import PairConsumed
from services.gate.domain.unit_result import ArmResult
from services.gate.rpc.round_metrics import RoundMetrics
from services.runtime.metrics import REGISTRY


def _shown(metric: str, task_type: str) -> float | None:
    return REGISTRY.get_sample_value(f"videotree_gate_{metric}", {"workspace": "shown", "task_type": task_type})


def _consumed(task_type: str, n_used: int, e_value: float) -> PairConsumed:
    row = EvidenceRow(n_used - 1, f"u{n_used}", ArmResult.WRONG, ArmResult.RIGHT, n_used, 0, math.log(e_value))
    return PairConsumed(task_type, row, n_used, launched=n_used + 2, n_planned=40)


def test_units_and_evidence_of_each_type_are_shown_until_the_round_ends() -> None:
    with RoundMetrics("shown") as metrics:
        metrics.happened(_consumed("Order", 1, 1.5))
        metrics.happened(_consumed("Order", 2, 100.0))
        metrics.happened(_consumed("Counting", 1, 0.1))
        assert (_shown("units_used", "Order"), _shown("units_planned", "Order")) == (2, 40)
        assert _shown("log10_e", "Order") == pytest.approx(2)
        assert _shown("log10_e", "Counting") == pytest.approx(-1)
    assert _shown("units_used", "Order") is None
    assert _shown("log10_e", "Counting") is None
