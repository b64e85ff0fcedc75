"""What would this gate accept, and at what cost? Monte Carlo over cells of flip rates."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass

from services.gate.domain.errors import InvalidParameter
from services.gate.domain.power import smallest_confirmed_gain
from services.gate.domain.simulation import DECISIONS, FlipRates, simulate
from services.gate.domain.verdict import Decision, GateParameters

MAX_CELLS = 100
MAX_REQUEST_OUTCOMES = 500_000_000


@dataclass(frozen=True, slots=True)
class SimulationSpec:
    """`gates` gates of `n_units` for each cell, drawn from `seed`. Raises InvalidParameter with the request's field."""

    parameters: GateParameters
    n_units: int
    gates: int
    cells: tuple[FlipRates, ...]
    seed: int

    def __post_init__(self) -> None:
        """Bound the work of one request."""
        if not 1 <= len(self.cells) <= MAX_CELLS:
            raise InvalidParameter("cells", len(self.cells), f"between 1 and {MAX_CELLS} of them")
        if self.seed < 0:
            raise InvalidParameter("seed", self.seed, "at least 0")
        if self.gates * self.n_units * len(self.cells) > MAX_REQUEST_OUTCOMES:
            requirement = f"such that cells x gates x length is at most {MAX_REQUEST_OUTCOMES}"
            raise InvalidParameter("gate_count", self.gates, requirement)


@dataclass(frozen=True, slots=True)
class Cell:
    """What was seen at one pair of flip rates: the share of each decision and the mean units used."""

    rates: FlipRates
    shares: Mapping[Decision, float]
    mean_units: float
    accept_standard_error: float


@dataclass(frozen=True, slots=True)
class Simulation:
    """One cell a pair of rates, and the smallest gain that a gate of this length confirms with 80% probability."""

    cells: tuple[Cell, ...]
    detectable_gain: float | None


async def simulate_gate(spec: SimulationSpec) -> Simulation:
    """The simulation, run in a thread cell by cell so that other calls go on and a cancelled one stops soon."""
    cells = [await asyncio.to_thread(_simulate_cell, spec, rates) for rates in spec.cells]
    gain = await asyncio.to_thread(smallest_confirmed_gain, spec.n_units, spec.parameters)
    return Simulation(tuple(cells), gain)


def _simulate_cell(spec: SimulationSpec, rates: FlipRates) -> Cell:
    gates = simulate(rates, spec.n_units, spec.gates, spec.seed, spec.parameters)
    shares = {decision: gates.share(decision) for decision in DECISIONS if decision.terminal}
    accepted = gates.share(Decision.ACCEPT_CONFIRMED, Decision.ACCEPT_PROVISIONAL)
    error = math.sqrt(accepted * (1 - accepted) / spec.gates)
    return Cell(rates, shares, float(gates.n_used.mean()), error)
