"""The pessimistic reading: a candidate that makes the agent unparsable must not have its failures left out.

Missing data is not missing at random when the candidate causes it. Each unit of the consumed prefix that was excluded
for the candidate's own `parse_error`, while the base was right, counts as a loss in this reading; an accept must
still clear e_provisional and w_net_min.
"""

from __future__ import annotations

from services.gate.domain.unit_result import ArmResult
from services.gate.domain.verdict import Decision, ExitRule


def hidden_loss(base: ArmResult, cand: ArmResult) -> bool:
    """Whether an excluded unit counts as a loss when read pessimistically."""
    return base is ArmResult.RIGHT and cand is ArmResult.UNPARSABLE


def reread(decision: Decision, rule: ExitRule, wins: int, losses: int, hidden_losses: int) -> Decision:
    """`decision`, or REJECT_UNSTABLE for an accept that the pessimistic reading does not clear."""
    if decision.accepts and hidden_losses and not rule.survives(wins, losses + hidden_losses):
        return Decision.REJECT_UNSTABLE
    return decision
