"""Evidence for a candidate from its flips: a test martingale under P(win | flip) <= 1/2.

Only discordant pairs count. With W wins and L losses, n = W + L, the value is the likelihood of the flips under a
mixture over p = P(win | flip), divided by their likelihood 2^-n under p = 1/2:

- `uniform`, p uniform on [0, 1]:      E(W, L) = 2^n B(W+1, L+1)
- `one_sided`, p uniform on [1/2, 1]:  E(W, L) = 2^(n+1) * integral over [1/2, 1] of p^W (1-p)^L dp

`one_sided` is a supermartingale for every p <= 1/2, and stronger. By Ville's inequality P(E ever >= 1/a) <= a, whenever
one stops looking (Ville 1939; the mixture is Robbins 1970, "Statistical methods related to the law of the iterated
logarithm"). E(0, 0) = 1 in both.

All values are natural logarithms. Both mixtures have a one-step recurrence (integration by parts for `one_sided`):

    uniform    win  E <- E * 2(W+1) / (n+2)            loss  E <- E * 2(L+1) / (n+2)
    one_sided  win  E <- (2(W+1) E + 1) / (n+2)        loss  E <- (2(L+1) E - 1) / (n+2)

A loss cancels in the last one, so its relative error grows like 1 / P(Bin(n+1, 1/2) <= W). It is used only while L - W
<= 2 sqrt(n), where that factor is below 50; beyond, the value comes from a series of positive terms. Where W = L the
symmetric halves of the integral are equal and both mixtures agree exactly.
"""

from __future__ import annotations

import enum
import math
import sys

_LN2 = math.log(2.0)
_LN_MAX_FLOAT = math.log(sys.float_info.max)
_NEGLIGIBLE = 1e-17


class Mixture(enum.StrEnum):
    """The prior over P(win | flip) that the evidence is an average over."""

    UNIFORM = "uniform"
    ONE_SIDED = "one_sided"


def e_value(log_e: float) -> float:
    """E from its logarithm; saturates at the largest float instead of overflowing."""
    return math.exp(log_e) if log_e < _LN_MAX_FLOAT else sys.float_info.max


def log_evidence(wins: int, losses: int, mixture: Mixture) -> float:
    """ln E(wins, losses) in closed form, for any non-negative counts."""
    if mixture is Mixture.UNIFORM or wins == losses:
        return _log_uniform(wins, losses)
    if wins < losses:
        return _log_one_sided_series(wins, losses)
    log_both_halves = _LN2 + _log_uniform(wins, losses)
    return log_both_halves + math.log1p(-math.exp(_log_one_sided_series(losses, wins) - log_both_halves))


def _log_uniform(wins: int, losses: int) -> float:
    flips = wins + losses
    return flips * _LN2 + math.lgamma(wins + 1) + math.lgamma(losses + 1) - math.lgamma(flips + 2)


def _log_one_sided_series(wins: int, losses: int) -> float:
    """ln E of `one_sided` where wins <= losses: 1/(n+1) * sum over k of prod_{j<k} 2(W-j)/(n-j), all terms positive."""
    flips = wins + losses
    total = term = 1.0
    for j in range(wins):
        term *= 2.0 * (wins - j) / (flips - j)
        total += term
        if term < _NEGLIGIBLE * total:
            break
    return math.log(total) - math.log(flips + 1)


class Evidence:
    """The evidence after a sequence of flips, advanced one flip at a time in constant time.

    `wins`, `losses`: flips so far. `log_e`: ln E. Relative error of E below 1e-10 for 2,000 flips (compensated sums).
    """

    __slots__ = ("_carry", "_one_sided", "_sum", "log_e", "losses", "wins")

    def __init__(self, mixture: Mixture) -> None:
        self.wins = 0
        self.losses = 0
        self.log_e = 0.0
        self._one_sided = mixture is Mixture.ONE_SIDED
        self._sum = 0.0
        self._carry = 0.0

    def win(self) -> float:
        """Count a win and return the new ln E."""
        self.wins += 1
        return self._advance(2.0 * self.wins, 1.0)

    def loss(self) -> float:
        """Count a loss and return the new ln E."""
        self.losses += 1
        return self._advance(2.0 * self.losses, -1.0)

    def _advance(self, factor: float, boundary: float) -> float:
        flips = self.wins + self.losses
        if not self._one_sided:
            self._add(math.log(factor / (flips + 1)))
        elif self.wins == self.losses:
            self._restart(_log_uniform(self.wins, self.losses))
        elif self.losses - self.wins > 2.0 * math.sqrt(flips):
            self._restart(_log_one_sided_series(self.wins, self.losses))
        else:
            self._add(math.log((factor + boundary * math.exp(-self.log_e)) / (flips + 1)))
        return self.log_e

    def _add(self, increment: float) -> None:
        """Kahan-Babuska summation: the rounding of each addition is carried along."""
        total = self._sum + increment
        larger, smaller = (self._sum, increment) if abs(self._sum) >= abs(increment) else (increment, self._sum)
        self._carry += (larger - total) + smaller
        self._sum = total
        self.log_e = total + self._carry

    def _restart(self, log_e: float) -> None:
        self._sum, self._carry, self.log_e = log_e, 0.0, log_e
