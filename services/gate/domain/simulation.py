"""Many gates at once: what a set of parameters accepts, and at what cost.

Outcomes are whole numbers per gate and unit: 1 a win, -1 a loss, 0 a tie. The exits are the ones of `verdict.py`, read
from tables of ln E over (wins, losses) instead of one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from services.gate.domain.errors import InvalidParameter
from services.gate.domain.evidence import Mixture
from services.gate.domain.verdict import Decision, GateParameters

DECISIONS = tuple(Decision)
"""Decisions by their code in the arrays of this module."""

MAX_UNITS = 2_000
"""Longest ladder; the tables grow with its square."""

MAX_OUTCOMES = 100_000_000
"""Most units drawn in one simulation."""

_BATCH_OUTCOMES = 4_000_000

_CODE = {decision: code for code, decision in enumerate(DECISIONS)}


@lru_cache(maxsize=2)
def log_e_table(n_units: int, mixture: Mixture) -> NDArray[np.float64]:
    """ln E by [wins, losses], each from 0 to `n_units`."""
    if mixture is Mixture.UNIFORM:
        counts = np.arange(2 * n_units + 2)
        log_factorial = np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
        flips = counts[: n_units + 1, None] + counts[None, : n_units + 1]
        single = log_factorial[: n_units + 1]
        return np.asarray(flips * np.log(2.0) + single[:, None] + single[None, :] - log_factorial[flips + 1])
    losses = np.arange(n_units + 1)
    table = np.empty((n_units + 1, n_units + 1))
    table[0] = -np.log(losses + 1.0)
    for wins in range(n_units):
        table[wins + 1] = np.logaddexp(np.log(2.0 * (wins + 1)) + table[wins], 0.0) - np.log(wins + losses + 2.0)
    return table


@dataclass(frozen=True, slots=True)
class ExitTables:
    """The exits of a ladder of `n_units`, for every (wins, losses) at once; ties are given with each call."""

    n_units: int
    parameters: GateParameters

    def decide(self, wins: NDArray[np.int64], losses: NDArray[np.int64], n_used: int) -> NDArray[np.int8]:
        """Decision codes after `n_used` units, in the order of the exits."""
        parameters = self.parameters
        table = log_e_table(self.n_units, parameters.mixture)
        log_e, net = table[wins, losses], wins - losses
        clear = (net >= parameters.w_net_min) & (net / n_used >= parameters.delta_min)
        remaining = self.n_units - n_used
        ln_provisional = np.log(parameters.e_provisional)
        if remaining:
            best_net = net + remaining
            reachable = (best_net >= parameters.w_net_min) & (best_net / self.n_units >= parameters.delta_min)
            reachable &= table[wins + remaining, losses] >= ln_provisional
            last = np.where(reachable, _CODE[Decision.CONTINUE], _CODE[Decision.REJECT_FUTILE])
        else:
            provisional = clear & (log_e >= ln_provisional)
            last = np.where(provisional, _CODE[Decision.ACCEPT_PROVISIONAL], _CODE[Decision.REJECT_EXHAUSTED])
        llr = wins * np.log(2 * parameters.p1) + losses * np.log(2 * (1 - parameters.p1))
        last = np.where(llr <= parameters.lambda_dir, _CODE[Decision.REJECT_DIRECTION], last)
        confirmed = clear & (log_e >= np.log(parameters.e_confirm))
        return np.where(confirmed, _CODE[Decision.ACCEPT_CONFIRMED], last).astype(np.int8)


@dataclass(frozen=True, slots=True)
class Replay:
    """Per gate: the code of its decision (see DECISIONS) and the units it used."""

    codes: NDArray[np.int8]
    n_used: NDArray[np.int64]

    def share(self, *decisions: Decision) -> float:
        """Share of gates that ended in one of `decisions`."""
        return float(np.isin(self.codes, [_CODE[decision] for decision in decisions]).mean())


def replay(outcomes: NDArray[np.int8], parameters: GateParameters) -> Replay:
    """Run each row of `outcomes` (gates x units, in ladder order) through the exits."""
    gates, n_units = outcomes.shape
    tables = ExitTables(n_units, parameters)
    codes = np.full(gates, _CODE[Decision.CONTINUE], dtype=np.int8)
    n_used = np.zeros(gates, dtype=np.int64)
    alive = np.arange(gates)
    wins, losses = np.zeros(gates, dtype=np.int64), np.zeros(gates, dtype=np.int64)
    for rank in range(n_units):
        now = outcomes[alive, rank]
        wins, losses = wins + (now == 1), losses + (now == -1)
        decided = tables.decide(wins, losses, rank + 1)
        codes[alive], n_used[alive] = decided, rank + 1
        on = decided == _CODE[Decision.CONTINUE]
        alive, wins, losses = alive[on], wins[on], losses[on]
        if not alive.size:
            break
    return Replay(codes, n_used)


@dataclass(frozen=True, slots=True)
class FlipRates:
    """P(win) and P(loss) per unit; the rest are ties. Raises InvalidParameter."""

    win: float
    loss: float

    def __post_init__(self) -> None:
        """Check both ranges."""
        for name, rate in (("win", self.win), ("loss", self.loss)):
            if not 0 <= rate <= 1:
                raise InvalidParameter(name, rate, "in [0, 1]")
        if self.win + self.loss > 1 + 1e-12:
            raise InvalidParameter("win", self.win, f"at most 1 - loss ({1 - self.loss:g})")


def simulate(rates: FlipRates, n_units: int, gates: int, seed: int, parameters: GateParameters) -> Replay:
    """`gates` independent gates of `n_units`, drawn from `seed`. Raises InvalidParameter for a size out of bounds."""
    if not 1 <= n_units <= MAX_UNITS:
        raise InvalidParameter("ladder_length", n_units, f"between 1 and {MAX_UNITS}")
    if not 1 <= gates <= MAX_OUTCOMES // n_units:
        raise InvalidParameter("gate_count", gates, f"between 1 and {MAX_OUTCOMES} / ladder_length")
    rng = np.random.default_rng(seed)
    batch = max(1, _BATCH_OUTCOMES // n_units)
    parts = [
        replay(_draw(rates, (min(batch, gates - done), n_units), rng), parameters) for done in range(0, gates, batch)
    ]
    return Replay(np.concatenate([part.codes for part in parts]), np.concatenate([part.n_used for part in parts]))


def _draw(rates: FlipRates, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.int8]:
    draws = rng.random(shape, dtype=np.float32)
    return (draws < rates.win).astype(np.int8) - (draws >= 1 - rates.loss).astype(np.int8)
