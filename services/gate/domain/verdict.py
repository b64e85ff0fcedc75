"""The exits of the gate and the verdict they lead to.

After each consumed unit the exits are tried in this order: confirm, direction (Wald's lower bound of the sequential
probability ratio test of P(win | flip) = p1 against 1/2; Wald 1945), futile, exhausted, continue.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, fields

from services.gate.domain.errors import InvalidParameter
from services.gate.domain.evidence import Mixture, e_value, log_evidence
from services.gate.domain.stability import Stability

RULE_VERSION = "gate-2"

MAX_COUNT = 1_000_000_000
"""Largest count that a verdict is given on."""


class Decision(enum.StrEnum):
    """Where a type stands; every value but CONTINUE is terminal."""

    CONTINUE = "CONTINUE"
    ACCEPT_CONFIRMED = "ACCEPT_CONFIRMED"
    ACCEPT_PROVISIONAL = "ACCEPT_PROVISIONAL"
    REJECT_DIRECTION = "REJECT_DIRECTION"
    REJECT_FUTILE = "REJECT_FUTILE"
    REJECT_EXHAUSTED = "REJECT_EXHAUSTED"
    REJECT_UNSTABLE = "REJECT_UNSTABLE"

    @property
    def accepts(self) -> bool:
        """Whether the candidate replaces the current skill."""
        return self in (Decision.ACCEPT_CONFIRMED, Decision.ACCEPT_PROVISIONAL)

    @property
    def terminal(self) -> bool:
        """Whether the type is frozen by it."""
        return self is not Decision.CONTINUE


@dataclass(frozen=True, slots=True)
class GateParameters:
    """The thresholds of one gate.

    `e_confirm`, `e_provisional`: bars on E. `w_net_min`: least W - L of an accept. `delta_min`: least (W - L) / n_used
    of an accept. `lambda_dir`: log likelihood ratio at which the direction exit rejects, against P(win | flip) = `p1`.
    Raises InvalidParameter naming the field.
    """

    mixture: Mixture = Mixture.UNIFORM
    e_confirm: float = 20.0
    e_provisional: float = 3.0
    w_net_min: int = 2
    delta_min: float = 0.02
    lambda_dir: float = -0.642
    p1: float = 0.7

    def __post_init__(self) -> None:
        """Check every range."""
        for name in (f.name for f in fields(self) if f.name != "mixture"):
            _require(math.isfinite(getattr(self, name)), name, getattr(self, name), "a finite number")
        _require(self.e_provisional > 1, "e_provisional", self.e_provisional, "greater than 1")
        _require(self.e_provisional < self.e_confirm, "e_provisional", self.e_provisional, "less than e_confirm")
        _require(self.w_net_min >= 0, "w_net_min", self.w_net_min, "at least 0")
        _require(0 <= self.delta_min <= 1, "delta_min", self.delta_min, "in [0, 1]")
        _require(self.lambda_dir < 0, "lambda_dir", self.lambda_dir, "negative")
        _require(0.5 < self.p1 < 1, "p1", self.p1, "strictly between 0.5 and 1")


def _require(holds: bool, field: str, value: object, requirement: str) -> None:
    if not holds:
        raise InvalidParameter(field, value, requirement)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says of one type, with every figure it rests on; all renderings show this object.

    `log_e` is ln E, `e` is E (saturating at the largest float). `n_remaining`: units of the ladder neither consumed nor
    excluded. `stability`: the candidate's parse errors, which an accept had to survive.
    """

    decision: Decision
    reason: str
    log_e: float
    wins: int
    losses: int
    n_used: int
    n_remaining: int
    stability: Stability
    parameters: GateParameters
    rule_version: str = RULE_VERSION

    @property
    def e(self) -> float:
        """The evidence E."""
        return e_value(self.log_e)


class ExitRule:
    """The exits for one set of parameters, with their logarithms taken once."""

    __slots__ = ("_ln_confirm", "_ln_loss", "_ln_provisional", "_ln_win", "parameters")

    def __init__(self, parameters: GateParameters) -> None:
        self.parameters = parameters
        self._ln_confirm = math.log(parameters.e_confirm)
        self._ln_provisional = math.log(parameters.e_provisional)
        self._ln_win = math.log(2 * parameters.p1)
        self._ln_loss = math.log(2 * (1 - parameters.p1))

    def decide(self, log_e: float, wins: int, losses: int, n_used: int, n_remaining: int) -> Decision:
        """The first exit that is open; `log_e` must be ln E(wins, losses) under the parameters' mixture."""
        if log_e >= self._ln_confirm and self._net(wins - losses, n_used):
            return Decision.ACCEPT_CONFIRMED
        if wins * self._ln_win + losses * self._ln_loss <= self.parameters.lambda_dir:
            return Decision.REJECT_DIRECTION
        if n_remaining > 0:
            reachable = self._provisional(wins + n_remaining, losses, n_used + n_remaining)
            return Decision.CONTINUE if reachable else Decision.REJECT_FUTILE
        if log_e >= self._ln_provisional and self._net(wins - losses, n_used):
            return Decision.ACCEPT_PROVISIONAL
        return Decision.REJECT_EXHAUSTED

    def survives(self, wins: int, losses: int) -> bool:
        """Whether E(wins, losses) and the net wins clear the provisional bar: the bar of the pessimistic reading."""
        if wins - losses < self.parameters.w_net_min:
            return False
        return log_evidence(wins, losses, self.parameters.mixture) >= self._ln_provisional

    def _net(self, net: int, n_used: int) -> bool:
        return n_used > 0 and net >= self.parameters.w_net_min and net / n_used >= self.parameters.delta_min

    def _provisional(self, wins: int, losses: int, n_used: int) -> bool:
        if not self._net(wins - losses, n_used):
            return False
        return log_evidence(wins, losses, self.parameters.mixture) >= self._ln_provisional


def decide_verdict(wins: int, losses: int, n_used: int, n_remaining: int, parameters: GateParameters) -> Verdict:
    """The verdict on bare counts. Raises InvalidParameter for counts that no gate can have."""
    for name, count in (("w", wins), ("l", losses), ("n_used", n_used), ("n_remaining", n_remaining)):
        _require(0 <= count <= MAX_COUNT, name, count, f"between 0 and {MAX_COUNT}")
    _require(n_used >= wins + losses, "n_used", n_used, "at least w + l")
    log_e = log_evidence(wins, losses, parameters.mixture)
    decision = ExitRule(parameters).decide(log_e, wins, losses, n_used, n_remaining)
    return make_verdict(decision, log_e, wins, losses, n_used, n_remaining, Stability(), parameters)


def make_verdict(
    decision: Decision,
    log_e: float,
    wins: int,
    losses: int,
    n_used: int,
    n_remaining: int,
    stability: Stability,
    parameters: GateParameters,
) -> Verdict:
    """The verdict with its reason in words."""
    reason = _reason(decision, log_e, wins, losses, n_used, n_remaining, stability, parameters)
    return Verdict(decision, reason, log_e, wins, losses, n_used, n_remaining, stability, parameters)


def _reason(
    decision: Decision,
    log_e: float,
    wins: int,
    losses: int,
    n_used: int,
    n_remaining: int,
    stability: Stability,
    parameters: GateParameters,
) -> str:
    figures = f"W={wins} L={losses} after {n_used} units, E={e_value(log_e):.4g}"
    match decision:
        case Decision.ACCEPT_CONFIRMED:
            return f"{figures} reaches e_confirm={parameters.e_confirm:g}"
        case Decision.ACCEPT_PROVISIONAL:
            return f"{figures}: the ladder is used up and e_provisional={parameters.e_provisional:g} is reached"
        case Decision.REJECT_DIRECTION:
            return f"{figures}: the flips speak against P(win | flip) = {parameters.p1:g}"
        case Decision.REJECT_FUTILE:
            return f"{figures}: {n_remaining} wins in a row could not reach e_provisional={parameters.e_provisional:g}"
        case Decision.REJECT_EXHAUSTED:
            return f"{figures}: the ladder is used up below e_provisional={parameters.e_provisional:g} or its net wins"
        case Decision.REJECT_UNSTABLE:
            return f"{figures}: {_instability(stability)}"
        case Decision.CONTINUE:
            return f"{figures}: {n_remaining} units remain"


def _instability(stability: Stability) -> str:
    cand = stability.cand
    if stability.garbled:
        share, limit = cand.errors / cand.questions, stability.max_share
        return (
            f"{cand.errors} of the candidate's {cand.questions} questions were unparsable ({share:.1%}), "
            f"more than {limit:.1%}"
        )
    return (
        f"the accept does not survive counting as losses the {stability.pessimistic_losses} units "
        "where only the candidate was unparsable"
    )
