import itertools
import random
from collections import Counter
from fractions import Fraction
from math import comb, factorial

import pytest

from services.gate.domain.errors import InvalidParameter
from services.gate.domain.evidence import Mixture
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


def evidence(ahead: int, behind: int, mixture: Mixture) -> Fraction:
    """E by its closed forms, exactly; `one_sided` is `uniform` times twice the Beta's mass above 1/2."""
    n = ahead + behind
    uniform = Fraction(2**n * factorial(ahead) * factorial(behind), factorial(n + 1))
    if mixture is Mixture.UNIFORM:
        return uniform
    return uniform * 2 * Fraction(sum(comb(n + 1, k) for k in range(ahead + 1)), 2 ** (n + 1))


def decision(wins: int, losses: int, used: int, units: int, mixture: Mixture) -> str:
    if losses > wins and evidence(losses, wins, mixture) >= 10:
        return "ROLL_BACK"
    if wins > losses and evidence(wins, losses, mixture) >= 20:
        return "CONFIRMED"
    return "KEPT" if used == units else "CONTINUE"


def exit_probabilities(win: float, loss: float, units: int, mixture: Mixture) -> Counter[str]:
    """The probability of each end, exactly, when a unit is won and lost with these probabilities."""
    ends: Counter[str] = Counter()
    reached = {(0, 0): 1.0}
    for used in range(1, units + 1):
        following: Counter[tuple[int, int]] = Counter()
        for (wins, losses), mass in reached.items():
            for dw, dl, chance in ((1, 0, win), (0, 1, loss), (0, 0, 1 - win - loss)):
                following[wins + dw, losses + dl] += mass * chance  # type: ignore[assignment]
        reached = {}
        for state, mass in following.items():
            end = decision(*state, used, units, mixture)
            if end == "CONTINUE":
                reached[state] = mass
            else:
                ends[end] += mass  # type: ignore[assignment]
    return ends


@pytest.mark.parametrize("mixture", Mixture)
def test_gat_13_the_exact_probabilities_are_those_of_every_sequence_through_the_review(mixture: Mixture) -> None:
    chances = {"W": 0.4, "L": 0.35, "B": 0.25}
    found: Counter[str] = Counter()
    for letters in itertools.product("WLB", repeat=8):
        mass = 1.0
        for letter in letters:
            mass *= chances[letter]
        found[review("".join(letters), mixture=mixture, probation_units=8).decision.value] += mass  # type: ignore
    assert found == pytest.approx(exit_probabilities(0.4, 0.35, 8, mixture), abs=1e-12)
    assert set(found) == {"ROLL_BACK", "CONFIRMED", "KEPT"}


@pytest.mark.parametrize("mixture", Mixture)
@pytest.mark.parametrize("flips_share", [0.2, 0.5, 1.0])
def test_gat_13_over_a_whole_probation_a_better_skill_is_rarely_rolled_back_and_a_useless_one_rarely_confirmed(
    mixture: Mixture, flips_share: float
) -> None:
    """Ville's bounds, 1/e_rollback and 1/e_confirm, hold because pairs are counted in their declared order."""
    better = exit_probabilities(0.7 * flips_share, 0.3 * flips_share, 30, mixture)
    useless = exit_probabilities(0.5 * flips_share, 0.5 * flips_share, 30, mixture)
    assert better["ROLL_BACK"] <= 0.1
    assert useless["CONFIRMED"] <= 0.05
    assert useless["ROLL_BACK"] <= 0.1
    assert better["CONFIRMED"] > useless["CONFIRMED"]


def probation_of_no_effect(n_units: int, fresh_predecessor: bool, rng: random.Random) -> ProbationDecision:
    """Both texts are right with one probability a unit; the file is drawn anew in each epoch, the predecessor maybe."""
    results = (ArmResult.WRONG, ArmResult.RIGHT)
    chances = [rng.uniform(0.3, 0.7) for _ in range(n_units)]
    pairs: list[Pair] = []
    predecessor = [rng.random() < chance for chance in chances]
    while len(pairs) < 30:
        pairs += [
            Pair(str(unit), results[predecessor[unit]], results[rng.random() < chance])
            for unit, chance in enumerate(chances)
        ]
        if fresh_predecessor:
            predecessor = [rng.random() < chance for chance in chances]
    return review_probation(pairs, ProbationParameters()).decision


def test_gat_13_epochs_add_up_only_if_the_predecessor_is_drawn_afresh_in_each() -> None:
    """Four val units over eight epochs. A unit whose predecessor was wrong once and for all can only win."""

    def shares(fresh: bool) -> dict[ProbationDecision, float]:
        rng = random.Random(7)
        ends = Counter(probation_of_no_effect(4, fresh, rng) for _ in range(3000))
        return {end: count / 3000 for end, count in ends.items()}

    fresh, reused = shares(True), shares(False)
    assert fresh[ProbationDecision.CONFIRMED] <= 0.02
    assert fresh[ProbationDecision.ROLL_BACK] <= 0.03
    assert reused[ProbationDecision.CONFIRMED] > 0.05, "the negative control breaks the bound"
    assert reused[ProbationDecision.ROLL_BACK] > 0.1
