import numpy as np
import pytest

from services.gate.domain.errors import InvalidParameter
from services.gate.domain.evidence import Mixture, log_evidence
from services.gate.domain.power import MAX_EXACT_UNITS, exit_probabilities, smallest_confirmed_gain
from services.gate.domain.simulation import DECISIONS, MAX_UNITS, FlipRates, log_e_table, replay, simulate
from services.gate.domain.verdict import Decision, ExitRule, GateParameters

REFERENCE = {
    Mixture.UNIFORM: {
        (0.1, 0.1): (0.5, 1.6, 28),
        (0.2, 0.1): (10.0, 12.0, 37),
        (0.3, 0.1): (38.3, 16.8, 38),
        (0.3, 0.05): (74.2, 13.6, 37),
    },
    Mixture.ONE_SIDED: {
        (0.1, 0.1): (1.1, 2.4, 28),
        (0.2, 0.1): (16.9, 13.0, 36),
        (0.3, 0.1): (49.9, 14.0, 34),
        (0.3, 0.05): (82.9, 7.7, 32),
    },
}
CELLS = [(mixture, rates, cell) for mixture, cells in REFERENCE.items() for rates, cell in cells.items()]


@pytest.mark.parametrize(("mixture", "rates", "cell"), CELLS)
def test_gat_14_exact_dynamic_programming_gives_the_reference_cells(
    mixture: Mixture, rates: tuple[float, float], cell: tuple[float, float, float]
) -> None:
    exits = exit_probabilities(FlipRates(*rates), 60, GateParameters(mixture=mixture, delta_min=0.0))
    confirmed, provisional, units = cell
    assert 100 * exits.probability[Decision.ACCEPT_CONFIRMED] == pytest.approx(confirmed, abs=0.3)
    assert 100 * exits.probability[Decision.ACCEPT_PROVISIONAL] == pytest.approx(provisional, abs=0.3)
    assert exits.mean_units == pytest.approx(units, abs=0.5)
    assert sum(exits.probability.values()) == pytest.approx(1.0, abs=1e-9)


def brute_force(rates: FlipRates, n_units: int, parameters: GateParameters) -> dict[Decision, float]:
    """Every sequence of outcomes, one by one, through the scalar rule: shares no table with what it checks."""
    rule, found = ExitRule(parameters), dict.fromkeys(Decision, 0.0)

    def walk(wins: int, losses: int, used: int, mass: float) -> None:
        if used:
            log_e = log_evidence(wins, losses, parameters.mixture)
            decision = rule.decide(log_e, wins, losses, used, n_units - used)
            if decision.terminal:
                found[decision] += mass
                return
        walk(wins + 1, losses, used + 1, mass * rates.win)
        walk(wins, losses + 1, used + 1, mass * rates.loss)
        walk(wins, losses, used + 1, mass * (1 - rates.win - rates.loss))

    walk(0, 0, 0, 1.0)
    return found


@pytest.mark.parametrize("mixture", Mixture)
def test_gat_14_dynamic_programming_and_simulation_agree_with_every_sequence(mixture: Mixture) -> None:
    rates, parameters = FlipRates(0.4, 0.15), GateParameters(mixture=mixture, e_confirm=8.0, delta_min=0.2)
    truth = brute_force(rates, 9, parameters)
    exits = exit_probabilities(rates, 9, parameters)
    simulated = simulate(rates, 9, 40_000, 3, parameters)
    for decision, probability in exits.probability.items():
        assert probability == pytest.approx(truth[decision], abs=1e-12)
        assert simulated.share(decision) == pytest.approx(probability, abs=0.012)
    assert truth[Decision.CONTINUE] == 0


@pytest.mark.parametrize("mixture", Mixture)
def test_gat_1_the_table_of_the_simulation_is_the_evidence(mixture: Mixture) -> None:
    table = log_e_table(300, mixture)
    for wins in (0, 1, 2, 7, 50, 149, 300):
        for losses in (0, 1, 3, 8, 51, 150, 300):
            assert table[wins, losses] == pytest.approx(log_evidence(wins, losses, mixture), abs=1e-9)


def test_trn_13b_the_smallest_gain_is_the_one_confirmed_with_eighty_percent() -> None:
    parameters = GateParameters()
    gain = smallest_confirmed_gain(60, parameters)
    assert gain is not None
    for nearby, above in ((gain, True), (gain - 0.003, False)):
        exits = exit_probabilities(FlipRates(nearby + 0.05, 0.05), 60, parameters)
        assert (exits.probability[Decision.ACCEPT_CONFIRMED] >= 0.8) is above


def test_trn_13b_longer_ladders_see_smaller_gains_also_across_the_change_to_simulation() -> None:
    lengths = (12, 20, 60, MAX_EXACT_UNITS, MAX_EXACT_UNITS + 50, 600)
    gains = [smallest_confirmed_gain(n, GateParameters(delta_min=0.0)) for n in lengths]
    assert all(gain is not None for gain in gains)
    assert gains == sorted(gains, reverse=True)  # type: ignore[type-var]


@pytest.mark.parametrize("n_units", [0, 1, 7, MAX_UNITS + 1])
def test_trn_13b_no_gain_is_named_where_none_could_be_confirmed(n_units: int) -> None:
    assert smallest_confirmed_gain(n_units, GateParameters()) is None


def test_gat_11_a_simulation_is_a_function_of_its_seed() -> None:
    first, again, other = (simulate(FlipRates(0.3, 0.1), 60, 500, seed, GateParameters()) for seed in (1, 1, 2))
    assert (first.codes == again.codes).all()
    assert (first.codes != other.codes).any()


@pytest.mark.parametrize(
    ("rates", "field"), [((1.2, 0.0), "win"), ((0.0, -0.1), "loss"), ((0.6, 0.6), "win"), ((float("nan"), 0.1), "win")]
)
def test_gat_11_flip_rates_out_of_range_are_refused_by_name(rates: tuple[float, float], field: str) -> None:
    with pytest.raises(InvalidParameter) as raised:
        FlipRates(*rates)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("n_units", "gates", "field"),
    [(0, 1, "ladder_length"), (MAX_UNITS + 1, 1, "ladder_length"), (60, 0, "gate_count"), (60, 10**7, "gate_count")],
)
def test_gat_11_sizes_out_of_bounds_are_refused_by_name(n_units: int, gates: int, field: str) -> None:
    with pytest.raises(InvalidParameter) as raised:
        simulate(FlipRates(0.1, 0.1), n_units, gates, 0, GateParameters())
    assert raised.value.field == field


def test_gat_11_large_simulations_are_drawn_in_batches_without_a_seam() -> None:
    whole = simulate(FlipRates(0.3, 0.1), 2000, 4100, 5, GateParameters(delta_min=0.0))
    halves = (
        whole.share(Decision.ACCEPT_CONFIRMED),
        (whole.codes[2000:] == DECISIONS.index(Decision.ACCEPT_CONFIRMED)).mean(),
    )
    assert whole.codes.size == 4100
    assert halves[0] == pytest.approx(halves[1], abs=0.05)


def test_replay_reads_outcomes_in_ladder_order() -> None:
    outcomes = np.array([[1] * 12, [0] * 12, [-1] * 12, [1] * 4 + [-1] * 8], dtype=np.int8)
    played = replay(outcomes, GateParameters())
    assert [DECISIONS[code].name for code in played.codes] == [
        "ACCEPT_CONFIRMED",
        "REJECT_FUTILE",
        "REJECT_DIRECTION",
        "REJECT_FUTILE",
    ]
    assert list(played.n_used) == [8, 9, 2, 7]
