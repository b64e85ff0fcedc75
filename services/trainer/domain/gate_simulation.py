"""Simulated gates: how often a parameter set accepts for given true flip rates (GAT-11)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FlipRates:
    """P(win) and P(loss) of a unit in one simulated cell."""

    win: float
    loss: float


@dataclass(frozen=True, slots=True)
class SimulatedCell:
    """Shares of simulated gates that ended in each way."""

    rates: FlipRates
    confirmed_share: float
    provisional_share: float
    direction_share: float
    futile_share: float
    exhausted_share: float
    mean_units: float
    accept_standard_error: float


@dataclass(frozen=True, slots=True)
class Simulation:
    """Simulated cells, and the smallest gain confirmed with 80% probability (None when none would be)."""

    cells: tuple[SimulatedCell, ...] = field(default_factory=tuple)
    detectable_gain: float | None = None
