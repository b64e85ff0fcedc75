"""How often a candidate that spoils the output format is accepted, exactly (GAT-6)."""

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import pytest

from services.gate.domain.errors import AllUnitsExcluded
from services.gate.domain.evidence import Mixture, log_evidence
from services.gate.domain.pessimistic import reread
from services.gate.domain.prefix import Prefix
from services.gate.domain.stability import Stability
from services.gate.domain.unit_result import Arm, ArmResult, ParseCount
from services.gate.domain.verdict import Decision, ExitRule, GateParameters

UNIFORM, ONE_SIDED = Mixture
State = tuple[int, int, int]
"""Wins, losses, parse errors of the candidate."""


@dataclass(frozen=True)
class Candidate:
    """Per question: P(unparsable), P(right), and the base's own P(right), all independent."""

    unparsable: float
    right: float
    base: float

    def moves(self) -> dict[State, float]:
        win, loss = (1 - self.base) * self.right, self.base * (1 - self.unparsable - self.right)
        chances = {(1, 0, 0): win, (0, 1, 0): loss, (0, 0, 1): self.unparsable}
        return {**chances, (0, 0, 0): 1 - sum(chances.values())}


def half_right(base: float) -> Candidate:
    return Candidate(unparsable=0.5, right=0.5, base=base)


def accept_probability(candidate: Candidate, length: int, parameters: GateParameters, max_share: float = 0.10) -> float:
    """By dynamic programming over (wins, losses, parse errors): the exits before an accept see nothing else.

    Whether the base was right where the candidate was unparsable is independent of all that, so hidden losses are
    binomial when an accept opens.
    """
    rule = ExitRule(parameters)
    alive, accepted = {(0, 0, 0): 1.0}, 0.0
    for position in range(1, length + 1):
        alive = moved(alive, candidate)
        for state in list(alive):
            decision = exit_at(rule, state, position, length)
            if decision.terminal:
                mass = alive.pop(state)
                if decision.accepts:
                    accepted += mass * surviving(rule, decision, state, position, candidate.base, max_share)
    return accepted


def moved(alive: dict[State, float], candidate: Candidate) -> dict[State, float]:
    after: Counter[State] = Counter()
    for (wins, losses, unparsable), mass in alive.items():
        for (win, loss, garbled), chance in candidate.moves().items():
            after[wins + win, losses + loss, unparsable + garbled] += mass * chance
    return {state: mass for state, mass in after.items() if mass > 0}


def exit_at(rule: ExitRule, state: State, position: int, length: int) -> Decision:
    wins, losses, unparsable = state
    if position == unparsable:
        return Decision.CONTINUE
    log_e = cached_log_evidence(wins, losses, rule.parameters.mixture)
    return rule.decide(log_e, wins, losses, position - unparsable, length - position)


cached_log_evidence = lru_cache(maxsize=None)(log_evidence)


def surviving(
    rule: ExitRule, accept: Decision, state: State, position: int, base_right: float, max_share: float
) -> float:
    wins, losses, unparsable = state
    total = 0.0
    for hidden in range(unparsable + 1):
        chance = math.comb(unparsable, hidden) * base_right**hidden * (1 - base_right) ** (unparsable - hidden)
        stability = Stability(hidden, ParseCount(unparsable, position), max_share)
        total += chance * reread(accept, rule, wins, losses, stability).accepts
    return total


@pytest.mark.parametrize("mixture", Mixture)
@pytest.mark.parametrize("max_share", [0.10, 0.35, 1.0])
def test_gat_6_the_calculation_is_what_the_prefix_does_with_every_possible_ladder(
    mixture: Mixture, max_share: float
) -> None:
    """All 5^6 ladders of six units, with a low bar of confirmation so that short ladders see every exit."""
    parameters = GateParameters(mixture=mixture, e_confirm=4.0, e_provisional=1.5)
    candidate = Candidate(unparsable=0.3, right=0.6, base=0.35)
    total = 0.0
    for ladder in itertools.product(PAIRS, repeat=6):
        if accepts(ladder, parameters, max_share):
            total += math.prod(chance(pair, candidate) for pair in ladder)
    assert total == pytest.approx(accept_probability(candidate, 6, parameters, max_share), abs=1e-12)
    assert total > 0.01


RIGHT, WRONG, UNPARSABLE = ArmResult.RIGHT, ArmResult.WRONG, ArmResult.UNPARSABLE
Pair = tuple[ArmResult, ArmResult]
PAIRS: list[Pair] = [(WRONG, RIGHT), (RIGHT, WRONG), (RIGHT, RIGHT), (RIGHT, UNPARSABLE), (WRONG, UNPARSABLE)]


def chance(pair: Pair, candidate: Candidate) -> float:
    """Both wrong and both right are the same to the gate; the latter stands for both."""
    win, loss, unparsable, tie = candidate.moves().values()
    return dict(
        zip(PAIRS, [win, loss, tie, unparsable * candidate.base, unparsable * (1 - candidate.base)], strict=True)
    )[pair]


def accepts(ladder: tuple[Pair, ...], parameters: GateParameters, max_share: float) -> bool:
    prefix = Prefix("t", [str(rank) for rank in range(len(ladder))], parameters, max_share)
    for rank, (base, cand) in enumerate(ladder):
        prefix.resolve(str(rank), Arm.BASE, base)
        prefix.resolve(str(rank), Arm.CAND, cand)
    try:
        return prefix.verdict.decision.accepts
    except AllUnitsExcluded:
        return False


@pytest.mark.parametrize("length", [20, 40, 60])
@pytest.mark.parametrize(
    ("mixture", "base", "bound"),
    [
        (UNIFORM, 0.3, 3.9e-3),
        (UNIFORM, 0.5, 9.5e-4),
        (UNIFORM, 0.7, 9.0e-5),
        (ONE_SIDED, 0.3, 5.4e-3),
        (ONE_SIDED, 0.5, 2.0e-3),
        (ONE_SIDED, 0.7, 2.4e-4),
    ],
)
def test_gat_6_a_candidate_right_half_the_time_and_unparsable_otherwise_is_next_to_never_accepted(
    mixture: Mixture, base: float, bound: float, length: int
) -> None:
    """Exact figures, rounded up. What is left are ladders whose head happens to be parsable.

    At 0.3 the candidate is right more often than the base even so. Without the limit of parse errors it would be 19 to
    26% at 0.3 and 2 to 4% at 0.5.
    """
    parameters = GateParameters(mixture=mixture)
    with_limit = accept_probability(half_right(base), length, parameters)
    assert bound / 1.5 < with_limit <= bound
    assert accept_probability(half_right(base), length, parameters, max_share=1.0) > 4 * with_limit


@pytest.mark.parametrize(("unparsable", "least"), [(0.0, 0.96), (0.03, 0.91), (0.05, 0.83)])
@pytest.mark.parametrize("mixture", Mixture)
def test_gat_6_a_better_candidate_with_a_few_parse_errors_is_still_accepted(
    mixture: Mixture, unparsable: float, least: float
) -> None:
    """Right in 85% of what is parsed, against 40%."""
    candidate = Candidate(unparsable, right=0.85 * (1 - unparsable), base=0.4)
    assert accept_probability(candidate, 60, GateParameters(mixture=mixture)) >= least
