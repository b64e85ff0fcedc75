import math
import random
import time
import warnings
from fractions import Fraction

import numpy as np
import pytest

from services.gate.domain.evidence import Evidence, Mixture, e_value, log_evidence

REFERENCE = [(8, 0, 28.444), (7, 0, 16.0), (5, 0, 5.333), (4, 0, 3.2), (0, 0, 1.0)]


@pytest.mark.parametrize(("wins", "losses", "expected"), REFERENCE)
def test_gat_1_uniform_has_its_reference_values(wins: int, losses: int, expected: float) -> None:
    assert e_value(log_evidence(wins, losses, Mixture.UNIFORM)) == pytest.approx(expected, abs=5e-4)


def test_gat_1_one_sided_reaches_twenty_after_seven_wins_and_uniform_after_eight() -> None:
    needed = {}
    for mixture in Mixture:
        evidence = Evidence(mixture)
        while evidence.win() < math.log(20):
            pass
        needed[mixture] = evidence.wins
    assert needed == {Mixture.UNIFORM: 8, Mixture.ONE_SIDED: 7}


def exact(wins: int, losses: int, mixture: Mixture) -> Fraction:
    """E as a rational: Beta by factorials; the upper half of the integral is a binomial tail."""
    flips = wins + losses
    uniform = Fraction(2**flips * math.factorial(wins) * math.factorial(losses), math.factorial(flips + 1))
    if mixture is Mixture.UNIFORM:
        return uniform
    tail = sum(math.comb(flips + 1, k) for k in range(wins + 1))
    return 2 * uniform * Fraction(tail, 2 ** (flips + 1))


def relative_error(log_e: float, truth: Fraction) -> float:
    """|E / truth - 1|, with both taken apart into mantissa and power of two so that neither overflows."""
    shift = truth.numerator.bit_length() - truth.denominator.bit_length()
    mantissa = float(truth / Fraction(2) ** shift)
    return abs(math.expm1(log_e - shift * math.log(2) - math.log(mantissa)))


@pytest.mark.parametrize("mixture", Mixture)
@pytest.mark.parametrize("p_win", [0.0, 0.2, 0.45, 0.5, 0.55, 0.8, 1.0])
def test_gat_1_relative_error_is_below_1e_10_for_two_thousand_flips(mixture: Mixture, p_win: float) -> None:
    rng = random.Random(f"{mixture}{p_win}")
    evidence = Evidence(mixture)
    checked = {*range(1, 60), *range(100, 2001, 190), 2000}
    for flips in range(1, 2001):
        log_e = evidence.win() if rng.random() < p_win else evidence.loss()
        if flips in checked:
            truth = exact(evidence.wins, evidence.losses, mixture)
            assert relative_error(log_e, truth) <= 1e-10, (evidence.wins, evidence.losses)
            closed = log_evidence(evidence.wins, evidence.losses, mixture)
            assert relative_error(closed, truth) <= 1e-10, (evidence.wins, evidence.losses)


@pytest.mark.parametrize("path", ["W" * 1000 + "L" * 1000, "L" * 1000 + "W" * 1000, "WL" * 1000, "LLW" * 666])
@pytest.mark.parametrize("mixture", Mixture)
def test_gat_1_extreme_orders_keep_the_relative_error(mixture: Mixture, path: str) -> None:
    evidence = Evidence(mixture)
    for flips, flip in enumerate(path, start=1):
        log_e = evidence.win() if flip == "W" else evidence.loss()
        if flips % 97 == 0 or flips == len(path):
            assert relative_error(log_e, exact(evidence.wins, evidence.losses, mixture)) <= 1e-10


@pytest.mark.parametrize("mixture", Mixture)
def test_gat_1_a_million_flips_stay_finite(mixture: Mixture) -> None:
    million = 1_000_000
    for wins, losses in ((million, 0), (0, million), (million // 2, million // 2), (million, million)):
        log_e = log_evidence(wins, losses, mixture)
        assert math.isfinite(log_e)
        assert math.isfinite(e_value(log_e))
        assert e_value(log_e) >= 0
    evidence = Evidence(mixture)
    for _ in range(million):
        evidence.win()
    assert evidence.log_e == pytest.approx(log_evidence(million, 0, mixture), rel=1e-12)


def test_gat_14_savvi_agrees_on_the_uniform_mixture() -> None:
    """savvi takes concentration k with prior k * theta_0: k = 2 at theta_0 = (1/2, 1/2) is Dirichlet(1, 1)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from savvi.multinomial import Multinomial
    rng = random.Random(7)
    for p_win in (0.3, 0.5, 0.8):
        oracle = Multinomial(alpha=0.05, theta_0=np.array([0.5, 0.5]), k=2)
        evidence = Evidence(Mixture.UNIFORM)
        for _ in range(200):
            won = rng.random() < p_win
            oracle.update(np.array([int(won), int(not won)]))
            log_e = evidence.win() if won else evidence.loss()
            assert e_value(log_e) == pytest.approx(oracle.odds, rel=1e-9)


@pytest.mark.parametrize("mixture", Mixture)
def test_gat_1_is_a_martingale_at_one_half_and_a_supermartingale_below(mixture: Mixture) -> None:
    for wins in range(12):
        for losses in range(12):
            now = exact(wins, losses, mixture)
            win, loss = exact(wins + 1, losses, mixture), exact(wins, losses + 1, mixture)
            assert (win + loss) / 2 == now
            if mixture is Mixture.ONE_SIDED:
                assert win * Fraction(1, 4) + loss * Fraction(3, 4) <= now


def test_qua_4_a_ladder_of_flips_costs_little() -> None:
    evidence, flips = Evidence(Mixture.ONE_SIDED), 20_000
    started = time.process_time()
    for number in range(flips):
        if number % 2:
            evidence.win()
        else:
            evidence.loss()
    assert (time.process_time() - started) / flips < 20e-6, "four times the budget, for slow machines"
