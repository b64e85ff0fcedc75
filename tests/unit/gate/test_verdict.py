import math

import pytest

from services.gate.domain.errors import InvalidParameter
from services.gate.domain.evidence import Mixture
from services.gate.domain.verdict import RULE_VERSION, Decision, GateParameters, decide_verdict


def decision(wins: int, losses: int, used: int, remaining: int, **thresholds: float) -> Decision:
    return decide_verdict(wins, losses, used, remaining, GateParameters(**thresholds)).decision  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((8, 0, 8, 52), Decision.ACCEPT_CONFIRMED),
        ((7, 0, 7, 53), Decision.CONTINUE),
        ((7, 0, 7, 0), Decision.ACCEPT_PROVISIONAL),
        ((4, 0, 4, 0), Decision.ACCEPT_PROVISIONAL),
        ((3, 0, 3, 0), Decision.REJECT_EXHAUSTED),
        ((0, 1, 1, 59), Decision.CONTINUE),
        ((0, 2, 2, 58), Decision.REJECT_DIRECTION),
        ((1, 1, 2, 58), Decision.CONTINUE),
        ((1, 2, 3, 57), Decision.REJECT_DIRECTION),
        ((0, 0, 1, 2), Decision.REJECT_FUTILE),
        ((0, 0, 56, 4), Decision.CONTINUE),
        ((0, 0, 57, 3), Decision.REJECT_FUTILE),
        ((0, 0, 0, 0), Decision.REJECT_EXHAUSTED),
    ],
)
def test_gat_2_the_exits(counts: tuple[int, int, int, int], expected: Decision) -> None:
    assert decision(*counts) is expected


def test_gat_2_confirm_comes_before_direction_and_direction_before_futile() -> None:
    assert decision(8, 0, 8, 0, lambda_dir=-1e-9) is Decision.ACCEPT_CONFIRMED
    assert decision(0, 3, 3, 1) is Decision.REJECT_DIRECTION


def test_gat_2_direction_opens_at_walds_bound() -> None:
    llr = 1 * math.log(1.4) + 2 * math.log(0.6)
    assert decision(1, 2, 3, 57, lambda_dir=llr + 1e-9) is Decision.REJECT_DIRECTION
    assert decision(1, 2, 3, 57, lambda_dir=llr - 1e-9) is Decision.CONTINUE


def test_gat_2_a_confirm_needs_net_wins_per_unit() -> None:
    assert decision(8, 0, 400, 5) is Decision.ACCEPT_CONFIRMED
    assert decision(8, 0, 401, 5) is Decision.CONTINUE
    assert decision(8, 0, 401, 0) is Decision.REJECT_EXHAUSTED


def test_gat_2_evidence_against_the_candidate_is_no_evidence_for_it() -> None:
    """The uniform mixture is symmetric: E(0, 8) = E(8, 0)."""
    assert decision(0, 8, 8, 0) is Decision.REJECT_DIRECTION


def test_gat_2_the_bars_are_inclusive() -> None:
    assert decision(7, 0, 7, 10, e_confirm=16.0 * (1 - 1e-12)) is Decision.ACCEPT_CONFIRMED
    assert decision(7, 0, 7, 10, e_confirm=16.0 * (1 + 1e-12)) is Decision.CONTINUE


def test_gat_2_a_verdict_carries_all_that_it_rests_on() -> None:
    verdict = decide_verdict(7, 0, 9, 3, GateParameters(mixture=Mixture.ONE_SIDED))
    assert (verdict.wins, verdict.losses, verdict.n_used, verdict.n_remaining) == (7, 0, 9, 3)
    assert verdict.parameters.mixture is Mixture.ONE_SIDED
    assert verdict.rule_version == RULE_VERSION
    assert verdict.e == pytest.approx(31.875)
    assert verdict.reason == "W=7 L=0 after 9 units, E=31.88 reaches e_confirm=20"


@pytest.mark.parametrize("decided", Decision)
def test_gat_2_only_two_decisions_accept_and_only_one_goes_on(decided: Decision) -> None:
    assert decided.accepts == decided.name.startswith("ACCEPT")
    assert decided.terminal == (decided.name != "CONTINUE")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("e_confirm", 3.0),
        ("e_confirm", math.inf),
        ("e_confirm", math.nan),
        ("e_provisional", 1.0),
        ("e_provisional", math.nan),
        ("w_net_min", -1),
        ("delta_min", -0.1),
        ("delta_min", 1.1),
        ("delta_min", math.nan),
        ("lambda_dir", 0.0),
        ("lambda_dir", -math.inf),
        ("lambda_dir", math.nan),
        ("p1", 0.5),
        ("p1", 1.0),
        ("p1", math.nan),
    ],
)
def test_gat_2_parameters_out_of_range_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(InvalidParameter) as raised:
        GateParameters(**{field: value})  # type: ignore[arg-type]
    assert raised.value.field in (field, "e_provisional")


@pytest.mark.parametrize(
    ("counts", "field"),
    [
        ((-1, 0, 0, 0), "w"),
        ((0, -1, 0, 0), "l"),
        ((2, 2, 3, 0), "n_used"),
        ((0, 0, 0, -1), "n_remaining"),
        ((10**10, 0, 10**10, 0), "w"),
    ],
)
def test_gat_11_counts_that_no_gate_has_are_refused_by_name(counts: tuple[int, int, int, int], field: str) -> None:
    with pytest.raises(InvalidParameter) as raised:
        decide_verdict(*counts, GateParameters())
    assert raised.value.field == field
