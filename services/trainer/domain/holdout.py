"""What the held-out test measures at the end of an epoch, and what it need not measure again (TRN-9). Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

HoldoutLabel = Literal["baseline", "final", "best_hard", "best_mixed"]
HowObtained = Literal["derived", "measured", "pointer"]


@dataclass(frozen=True, slots=True, order=True)
class VersionPair:
    """A skills version and a prompts version: what an evaluation is an evaluation of."""

    skills: str
    prompts: str


@dataclass(frozen=True, slots=True)
class HoldoutLine:
    """One line of an epoch's held-out table; `derived` from the seed's baseline, `measured` now, or a `pointer`."""

    label: HoldoutLabel
    pair: VersionPair
    how: HowObtained


def plan_holdout(
    baseline: VersionPair,
    final: VersionPair,
    best_hard: VersionPair,
    best_mixed: VersionPair | None,
    evaluated: Collection[VersionPair],
) -> list[HoldoutLine]:
    """The lines of one epoch, in the order baseline, final, best hard, best mixed (absent while nothing is judged).

    `evaluated` is the memory: the pairs the holdout_eval table already has a result for. No pair is measured
    twice in a run, and the baseline pair never is: its result is derived.
    """
    known = {baseline, *evaluated}
    lines = [HoldoutLine("baseline", baseline, "derived")]
    wanted: list[tuple[HoldoutLabel, VersionPair]] = [("final", final), ("best_hard", best_hard)]
    if best_mixed is not None:
        wanted.append(("best_mixed", best_mixed))
    for label, pair in wanted:
        lines.append(HoldoutLine(label, pair, "pointer" if pair in known else "measured"))
        known.add(pair)
    return lines
