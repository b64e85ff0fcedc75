"""How many edits a proposal may hold as training goes on (EVO-7). Pure."""

from __future__ import annotations

import math
from typing import Literal

BudgetSchedule = Literal["cosine", "linear", "constant"]


def edit_budget_at(global_step: int, total_steps: int, start: int, end: int, schedule: BudgetSchedule) -> int:
    """The budget at `global_step`: `start` at the first step, `end` at the last one, rounded between them."""
    if schedule == "constant" or total_steps <= 1:
        return start
    progress = min(1.0, max(0.0, global_step / (total_steps - 1)))
    share = progress if schedule == "linear" else (1.0 - math.cos(math.pi * progress)) / 2.0
    return round(start + (end - start) * share)
