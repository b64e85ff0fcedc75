"""What an accept must survive: a candidate that makes the agent unparsable must not have its failures left out.

Missing data is not missing at random when the candidate causes it. So an accept stands only if

- of the candidate's questions in the consumed prefix no larger share than the guard's limit was unparsable. There is no
  least number of questions, as the guard has one: a prefix too short for the limit to allow one parse error has none;
- it clears e_provisional and w_net_min also where each unit of the prefix that was excluded for the candidate's own
  `parse_error`, while the base was right, counts as a loss.
"""

from __future__ import annotations

from services.gate.domain.stability import Stability
from services.gate.domain.unit_result import ArmResult
from services.gate.domain.verdict import Decision, ExitRule


def hidden_loss(base: ArmResult, cand: ArmResult) -> bool:
    """Whether an excluded unit counts as a loss when read pessimistically."""
    return base is ArmResult.RIGHT and cand is ArmResult.UNPARSABLE


def reread(decision: Decision, rule: ExitRule, wins: int, losses: int, stability: Stability) -> Decision:
    """`decision`, or REJECT_UNSTABLE for an accept that does not survive."""
    if decision.accepts and (stability.garbled or not _survives(rule, wins, losses, stability.pessimistic_losses)):
        return Decision.REJECT_UNSTABLE
    return decision


def _survives(rule: ExitRule, wins: int, losses: int, hidden_losses: int) -> bool:
    return hidden_losses == 0 or rule.survives(wins, losses + hidden_losses)
