"""What an accept rests on besides wins and losses: how parsable the candidate was over the consumed prefix."""

from __future__ import annotations

from dataclasses import dataclass

from services.gate.domain.unit_result import NO_QUESTIONS, ParseCount

DEFAULT_MAX_SHARE = 0.10
"""The guard's limit: of the candidate's questions in the consumed prefix, the share that may be unparsable."""


@dataclass(frozen=True, slots=True)
class Stability:
    """`pessimistic_losses`: excluded units that an accept has to survive as losses. `cand`: the candidate's questions
    in the consumed prefix and its own parse errors among them, of which an accept may have `max_share`.
    """

    pessimistic_losses: int = 0
    cand: ParseCount = NO_QUESTIONS
    max_share: float = DEFAULT_MAX_SHARE

    @property
    def garbled(self) -> bool:
        """Whether the share of parse errors is above its limit, however few the questions are."""
        return self.cand.errors > self.max_share * self.cand.questions
