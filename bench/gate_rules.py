"""What the gate's rule accepts and what it costs, beside other rules on the same outcomes (QUA-4).

    python -m bench.gate_rules [--gates 20000] [--quick]

Every rule sees the same drawn gates: per unit a win, a loss or a tie of the candidate against the current skill, drawn
independently. No effect: 10% wins, 10% losses. Small, medium, large: 15 : 10, 20 : 8 and 30 : 5. Harmful: 8 : 16.

- uniform, one_sided: this project's gate with its default thresholds and either mixture.
- pace: the betting rule of PACE with a fixed bet of one half: capital times 1.5 on a win, times 0.5 on a loss; accept
  at 20, reject at the end.
- greedy: "it scored higher": all units, accept when wins exceed losses.
- mcnemar: all units, McNemar's exact test, one-sided, at 5%.

Writes `bench/results/gate_rules.json` and `bench/results/gate-rules.svg`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.record import RESULTS, Figure, shown, write
from services.gate.domain.evidence import Mixture
from services.gate.domain.simulation import FlipRates, replay
from services.gate.domain.verdict import Decision, GateParameters

SEED = 20
LENGTHS = (20, 40, 60, 120)
EFFECTS: Mapping[str, FlipRates] = {
    "none": FlipRates(0.10, 0.10),
    "small": FlipRates(0.15, 0.10),
    "medium": FlipRates(0.20, 0.08),
    "large": FlipRates(0.30, 0.05),
    "harmful": FlipRates(0.08, 0.16),
}
PACE_ACCEPTS_AT = 20.0
MCNEMAR_LEVEL = 0.05

Outcomes = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Per gate: whether it accepted, and how many units it looked at."""

    accepted: NDArray[np.bool_]
    units: NDArray[np.int64]


def ours(mixture: Mixture) -> Callable[[Outcomes], Judgement]:
    """The gate's exits, unit by unit."""

    def judge(outcomes: Outcomes) -> Judgement:
        played = replay(outcomes, GateParameters(mixture=mixture))
        accepts = [code for code, decision in enumerate(Decision) if decision.accepts]
        return Judgement(np.isin(played.codes, accepts), played.n_used)

    return judge


def pace(outcomes: Outcomes) -> Judgement:
    """Capital in logarithms; the first unit at which it reaches the bar ends the gate."""
    steps = np.select([outcomes == 1, outcomes == -1], [math.log(1.5), math.log(0.5)], 0.0)
    reached = np.cumsum(steps, axis=1) >= math.log(PACE_ACCEPTS_AT) - 1e-12
    accepted = reached.any(axis=1)
    return Judgement(np.asarray(accepted), np.where(accepted, reached.argmax(axis=1) + 1, outcomes.shape[1]))


def greedy(outcomes: Outcomes) -> Judgement:
    """Accept what scored higher."""
    return _at_the_end(outcomes, np.asarray(outcomes.sum(axis=1) > 0))


def mcnemar(outcomes: Outcomes) -> Judgement:
    """P(Bin(W + L, 1/2) >= W) at most 5%, after all units."""
    wins, losses = (outcomes == 1).sum(axis=1), (outcomes == -1).sum(axis=1)
    return _at_the_end(outcomes, _tail_probabilities(outcomes.shape[1])[wins, losses] <= MCNEMAR_LEVEL)


def _tail_probabilities(n_units: int) -> NDArray[np.float64]:
    """P(Bin(W + L, 1/2) >= W) by [W, L]."""
    table_ = np.ones((n_units + 1, n_units + 1))
    for flips in range(1, n_units + 1):
        tail = 0.0
        for wins in range(flips, -1, -1):
            tail += math.comb(flips, wins) / 2**flips
            table_[wins, flips - wins] = tail
    return table_


def _at_the_end(outcomes: Outcomes, accepted: NDArray[np.bool_]) -> Judgement:
    return Judgement(accepted, np.full(len(outcomes), outcomes.shape[1], dtype=np.int64))


RULES: Mapping[str, Callable[[Outcomes], Judgement]] = {
    "uniform": ours(Mixture.UNIFORM),
    "one_sided": ours(Mixture.ONE_SIDED),
    "pace": pace,
    "greedy": greedy,
    "mcnemar": mcnemar,
}


def drawn(rates: FlipRates, gates: int, n_units: int, rng: np.random.Generator) -> Outcomes:
    """Gates x units: 1 a win, -1 a loss, 0 a tie."""
    points = rng.random((gates, n_units), dtype=np.float32)
    return np.asarray((points < rates.win).astype(np.int8) - (points >= 1 - rates.loss).astype(np.int8))


def compare(gates: int) -> list[dict[str, float | int | str]]:
    """A row for each effect, length and rule: share accepted with its standard error, mean units looked at."""
    rows: list[dict[str, float | int | str]] = []
    for place, (effect, rates) in enumerate(EFFECTS.items()):
        for n_units in LENGTHS:
            outcomes = drawn(rates, gates, n_units, np.random.default_rng((SEED, place, n_units)))
            for rule, judge in RULES.items():
                judgement = judge(outcomes)
                share = float(judgement.accepted.mean())
                error = math.sqrt(share * (1 - share) / gates)
                row = {"accepted": share, "standard_error": error, "mean_units": float(judgement.units.mean())}
                rows.append({"effect": effect, "units": n_units, "rule": rule, **row})
    return rows


def print_rows(rows: list[dict[str, float | int | str]]) -> None:
    """Accept rates in percent and mean units, a line for each effect and length."""
    by = {(row["effect"], row["units"], row["rule"]): row for row in rows}
    print(f"{'share accepted (mean units)':28}" + "".join(f"{rule:>17}" for rule in RULES))
    for effect, rates in EFFECTS.items():
        for n_units in LENGTHS:
            cells = (by[effect, n_units, rule] for rule in RULES)
            text = "".join(f"{cell['accepted']:>9.1%} ({cell['mean_units']:5.1f})" for cell in cells)
            print(f"{effect:8} {rates.win:.2f}:{rates.loss:.2f} n={n_units:<9}{text}")


def plot(rows: list[dict[str, float | int | str]]) -> None:
    """Accept rate against the number of units, a panel for each effect."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(14, 3.4), layout="constrained")
    panels = canvas.subplots(1, len(EFFECTS), sharey=True)
    for axes, effect in zip(panels, EFFECTS, strict=True):
        for rule in RULES:
            chosen = [row for row in rows if (row["effect"], row["rule"]) == (effect, rule)]
            axes.plot([row["units"] for row in chosen], [row["accepted"] for row in chosen], marker="o", label=rule)
        axes.axhline(MCNEMAR_LEVEL, color="grey", linewidth=0.7, linestyle=":")
        axes.set(title=f"{effect} effect", xlabel="units", ylim=(-0.02, 1.02))
    panels[0].set_ylabel("share accepted")
    panels[-1].legend(loc="upper right", fontsize=8)
    canvas.savefig(RESULTS / "gate-rules.svg")


def figures_of(rows: list[dict[str, float | int | str]]) -> list[Figure]:
    """The gate beside the other rules at its usual length of 60 units."""
    by = {(row["effect"], row["units"], row["rule"]): row for row in rows}
    figures = []
    for effect in EFFECTS:
        for rule in RULES:
            row = by[effect, 60, rule]
            what = f"{effect} effect, 60 units: {rule} accepts (mean {row['mean_units']:.1f} units)"
            figures.append(shown(what, float(row["accepted"]) * 100, "%"))
    return figures


def main(arguments: list[str] | None = None) -> int:
    """Draws, judges, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=20_000, help="gates of each effect and length")
    parser.add_argument("--quick", action="store_true", help="2,000 gates")
    options = parser.parse_args(arguments)
    gates = 2_000 if options.quick else options.gates
    rows = compare(gates)
    print_rows(rows)
    write("gate_rules", __doc__ or "", figures_of(rows), {"seed": SEED, "gates": gates, "rows": rows})
    plot(rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
