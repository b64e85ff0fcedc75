import pytest

from services.gate.domain.errors import InvalidParameter
from services.gate.domain.probation import (
    Pair,
    ProbationDecision,
    ProbationParameters,
    ProbationReview,
    review_probation,
)
from services.gate.domain.unit_result import ArmResult
from tests.builders.gate_builders import flips


def review(outcomes: str, **bars: float) -> ProbationReview:
    results = flips("t", outcomes)
    pairs = [
        Pair(f"t-{i}", ArmResult(results[f"t-{i}", "base"]), ArmResult(results[f"t-{i}", "cand"]))
        for i in range(len(outcomes))
    ]
    return review_probation(pairs, ProbationParameters(**bars))  # type: ignore[arg-type]


def test_gat_13_losses_roll_back_at_e_rollback() -> None:
    """E(7, 0) = 16 is the first above 10; E(6, 0) = 9.1 is not."""
    assert review("L" * 6).decision is ProbationDecision.CONTINUE
    rolled = review("L" * 12)
    assert (rolled.decision, rolled.n_used, rolled.losses) == (ProbationDecision.ROLL_BACK, 7, 7)


def test_gat_13_wins_confirm_at_e_confirm() -> None:
    confirmed = review("BWWWWWWWWLLLLLLLLLLLL")
    assert (confirmed.decision, confirmed.n_used, confirmed.wins, confirmed.losses) == (
        ProbationDecision.CONFIRMED,
        9,
        8,
        0,
    )


def test_gat_13_thirty_units_without_either_bar_are_kept() -> None:
    assert review("WLBN" * 7).decision is ProbationDecision.CONTINUE
    kept = review("WLBN" * 10)
    assert (kept.decision, kept.n_used) == (ProbationDecision.KEPT, 30)


def test_gat_13_the_symmetric_mixture_does_not_confirm_on_losses_nor_roll_back_on_wins() -> None:
    assert review("W" * 7).decision is ProbationDecision.CONTINUE
    assert review("L" * 9, e_rollback=1000.0).decision is ProbationDecision.CONTINUE


def test_gat_13_pairs_with_missing_data_count_nowhere() -> None:
    with_faults = review("LELFLPLLLL")
    assert (with_faults.decision, with_faults.n_used, with_faults.excluded) == (ProbationDecision.ROLL_BACK, 7, 3)


def test_gat_13_no_pairs_leave_it_on_probation() -> None:
    empty = review("")
    assert (empty.decision, empty.n_used, empty.log_e_for) == (ProbationDecision.CONTINUE, 0, 0.0)


@pytest.mark.parametrize(("field", "value"), [("e_rollback", 1.0), ("e_confirm", float("nan")), ("probation_units", 0)])
def test_gat_13_bars_out_of_range_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(InvalidParameter) as raised:
        ProbationParameters(**{field: value})  # type: ignore[arg-type]
    assert raised.value.field == field
