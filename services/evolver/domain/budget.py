"""How many edits a step may make (EVO-7)."""

import math
from enum import Enum

from services.evolver.domain.errors import InvalidBudget


class Schedule(Enum):
    """How the budget goes from its start to its end value."""

    COSINE = "cosine"
    LINEAR = "linear"
    CONSTANT = "constant"


def edit_budget_at(global_step: int, total_steps: int, start: int, end: int, schedule: Schedule) -> int:
    """Return the number of edits allowed in step `global_step` (from 0) of `total_steps`.

    Step 0 has `start`, the last step `end`, and steps beyond it keep `end`; values between are rounded half up.
    `cosine` is half a period, `end + (start - end) (1 + cos(pi t)) / 2`; `constant` is always `start`.
    Raises InvalidBudget for negative steps, no steps, or budgets below 1.
    """
    if global_step < 0 or total_steps < 1:
        raise InvalidBudget(f"step {global_step} of {total_steps} is no step", field="global_step")
    if start < 1 or end < 1:
        raise InvalidBudget(f"budgets must be at least 1, got start {start} and end {end}", field="start")
    progress = min(1.0, global_step / (total_steps - 1)) if total_steps > 1 else 0.0
    share = {
        Schedule.CONSTANT: 1.0,
        Schedule.LINEAR: 1.0 - progress,
        Schedule.COSINE: (1.0 + math.cos(math.pi * progress)) / 2.0,
    }[schedule]
    return math.floor(end + (start - end) * share + 0.5)
