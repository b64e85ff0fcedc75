"""Probation: a provisional accept goes on being compared with its predecessor, on fresh paired results.

The pairs are read in the order in which they were declared, and the first exit that opens ends the probation:
E(L, W) >= e_rollback with L > W rolls back, E(W, L) >= e_confirm with W > L confirms, `probation_units` units without
either keep the skill. The `uniform` mixture is symmetric, hence the conditions on which side is ahead.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass

from services.gate.domain.errors import InvalidParameter
from services.gate.domain.evidence import Mixture, e_value, log_evidence
from services.gate.domain.unit_result import ArmResult


class ProbationDecision(enum.StrEnum):
    """Where a provisional accept stands; only CONTINUE leaves it on probation."""

    CONTINUE = "CONTINUE"
    ROLL_BACK = "ROLL_BACK"
    CONFIRMED = "CONFIRMED"
    KEPT = "KEPT"


@dataclass(frozen=True, slots=True)
class ProbationParameters:
    """`e_rollback`, `e_confirm`: bars on the evidence against and for. `probation_units`: units without either bar."""

    mixture: Mixture = Mixture.UNIFORM
    e_rollback: float = 10.0
    e_confirm: float = 20.0
    probation_units: int = 30

    def __post_init__(self) -> None:
        """Check every range."""
        for name in ("e_rollback", "e_confirm"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 1):
                raise InvalidParameter(name, value, "finite and greater than 1")
        if self.probation_units < 1:
            raise InvalidParameter("probation_units", self.probation_units, "at least 1")


@dataclass(frozen=True, slots=True)
class Pair:
    """One unit answered with the predecessor and with the skill on probation."""

    unit_id: str
    predecessor: ArmResult
    current: ArmResult


@dataclass(frozen=True, slots=True)
class ProbationReview:
    """What came of the pairs. `n_used`: pairs counted; `excluded`: pairs with missing data before the exit."""

    decision: ProbationDecision
    reason: str
    wins: int
    losses: int
    n_used: int
    excluded: int
    log_e_for: float
    log_e_against: float
    parameters: ProbationParameters


def review_probation(pairs: Iterable[Pair], parameters: ProbationParameters) -> ProbationReview:
    """The review of all pairs so far, oldest first; pairs after the deciding one are not read."""
    wins = losses = n_used = excluded = 0
    decision = ProbationDecision.CONTINUE
    for pair in pairs:
        if pair.predecessor.is_infra or pair.current.is_infra:
            excluded += 1
            continue
        n_used += 1
        if pair.predecessor is not pair.current:
            wins += pair.current is ArmResult.RIGHT
            losses += pair.predecessor is ArmResult.RIGHT
        decision = _decide(wins, losses, n_used, parameters)
        if decision is not ProbationDecision.CONTINUE:
            break
    return _review(decision, wins, losses, n_used, excluded, parameters)


def _decide(wins: int, losses: int, n_used: int, parameters: ProbationParameters) -> ProbationDecision:
    if losses > wins and log_evidence(losses, wins, parameters.mixture) >= math.log(parameters.e_rollback):
        return ProbationDecision.ROLL_BACK
    if wins > losses and log_evidence(wins, losses, parameters.mixture) >= math.log(parameters.e_confirm):
        return ProbationDecision.CONFIRMED
    return ProbationDecision.KEPT if n_used >= parameters.probation_units else ProbationDecision.CONTINUE


def _review(
    decision: ProbationDecision, wins: int, losses: int, n_used: int, excluded: int, parameters: ProbationParameters
) -> ProbationReview:
    log_for = log_evidence(wins, losses, parameters.mixture)
    log_against = log_evidence(losses, wins, parameters.mixture)
    figures = f"W={wins} L={losses} after {n_used} units"
    reason = {
        ProbationDecision.ROLL_BACK: f"E={e_value(log_against):.4g} against it reaches e_rollback",
        ProbationDecision.CONFIRMED: f"E={e_value(log_for):.4g} for it reaches e_confirm",
        ProbationDecision.KEPT: f"{parameters.probation_units} units without either bar",
        ProbationDecision.CONTINUE: f"neither bar reached, {parameters.probation_units - n_used} units to go",
    }[decision]
    return ProbationReview(
        decision, f"{figures}: {reason}", wins, losses, n_used, excluded, log_for, log_against, parameters
    )
