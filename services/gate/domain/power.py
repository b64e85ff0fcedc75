"""Exact probabilities of the exits by dynamic programming, and the smallest gain a gate would have seen.

The state after t units is (wins, losses); its mass moves to a win, a loss or a tie with the rates of one unit, and
leaves the table when an exit opens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from services.gate.domain.simulation import DECISIONS, MAX_UNITS, ExitTables, FlipRates, simulate
from services.gate.domain.verdict import Decision, GateParameters

ASSUMED_LOSS_RATE = 0.05
"""P(loss) per unit under which gains are stated: even a better skill loses some units to sampling."""

MAX_EXACT_UNITS = 150
"""Longest ladder for exact probabilities; the work grows with the cube. Longer ones are simulated."""

_SIMULATED_GATES = (1_000, 4_000)
_SIMULATED_OUTCOMES = 2_000_000
_SIMULATION_SEED = 20
_PRECISION = 0.001


@dataclass(frozen=True, slots=True)
class ExitProbabilities:
    """P(decision) for every terminal decision, and the mean number of units used."""

    probability: Mapping[Decision, float]
    mean_units: float


def exit_probabilities(rates: FlipRates, n_units: int, parameters: GateParameters) -> ExitProbabilities:
    """Exact exit probabilities of a ladder of `n_units` at most MAX_EXACT_UNITS."""
    probability = dict.fromkeys((decision for decision in DECISIONS if decision.terminal), 0.0)
    mass, mean_units = np.zeros((n_units + 1, n_units + 1)), 0.0
    mass[0, 0] = 1.0
    for n_used, codes in enumerate(_codes(n_units, parameters), start=1):
        mean_units += mass.sum()
        mass = _step(mass, rates)
        for code, decision in enumerate(DECISIONS):
            if decision.terminal:
                probability[decision] += float(mass[: n_used + 1, : n_used + 1][codes == code].sum())
        mass[: n_used + 1, : n_used + 1][codes != DECISIONS.index(Decision.CONTINUE)] = 0.0
    return ExitProbabilities(probability, float(mean_units))


@lru_cache(maxsize=4)
def _codes(n_units: int, parameters: GateParameters) -> tuple[NDArray[np.int8], ...]:
    """For each n_used from 1: the decision codes by [wins, losses]; impossible pairs carry no mass and are harmless."""
    tables = ExitTables(n_units, parameters)
    grids = []
    for n_used in range(1, n_units + 1):
        wins, losses = np.indices((n_used + 1, n_used + 1))
        possible = wins + losses <= n_used
        codes = np.full(possible.shape, -1, dtype=np.int8)
        codes[possible] = tables.decide(wins[possible], losses[possible], n_used)
        grids.append(codes)
    return tuple(grids)


def _step(mass: NDArray[np.float64], rates: FlipRates) -> NDArray[np.float64]:
    moved = mass * (1 - rates.win - rates.loss)
    moved[1:, :] += mass[:-1, :] * rates.win
    moved[:, 1:] += mass[:, :-1] * rates.loss
    return moved


@lru_cache(maxsize=256)
def smallest_confirmed_gain(
    n_units: int, parameters: GateParameters, power: float = 0.8, loss_rate: float = ASSUMED_LOSS_RATE
) -> float | None:
    """The smallest P(win) - P(loss) per unit that a gate of `n_units` confirms with probability `power`.

    Stated at P(loss) = `loss_rate`, to 0.001; found by bisection over exact probabilities, over seeded simulations for
    ladders longer than MAX_EXACT_UNITS. None when no gain is large enough, because the ladder is too short to confirm,
    and for ladders longer than simulation.MAX_UNITS, which are not worked out.
    """
    low, high = loss_rate, 1.0 - loss_rate
    if not 1 <= n_units <= MAX_UNITS or _confirms(high, loss_rate, n_units, parameters) < power:
        return None
    while high - low > _PRECISION:
        middle = (low + high) / 2
        if _confirms(middle, loss_rate, n_units, parameters) >= power:
            high = middle
        else:
            low = middle
    return round(high - loss_rate, 3)


def _confirms(p_win: float, p_loss: float, n_units: int, parameters: GateParameters) -> float:
    rates = FlipRates(p_win, p_loss)
    if n_units <= MAX_EXACT_UNITS:
        return exit_probabilities(rates, n_units, parameters).probability[Decision.ACCEPT_CONFIRMED]
    fewest, most = _SIMULATED_GATES
    gates = max(fewest, min(most, _SIMULATED_OUTCOMES // n_units))
    return simulate(rates, n_units, gates, _SIMULATION_SEED, parameters).share(Decision.ACCEPT_CONFIRMED)
