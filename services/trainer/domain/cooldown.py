"""Cooldowns of rejected task types (TRN-7). Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def on_cooldown(cooldowns: Mapping[str, int], task_type: str, global_step: int) -> bool:
    """Whether the type must sit this step out. `cooldowns` holds, per type, the first global step it may try again."""
    return global_step < cooldowns.get(task_type, 0)


def cooldowns_after(
    cooldowns: Mapping[str, int], rejected: Collection[str], global_step: int, length: int
) -> dict[str, int]:
    """The cooldowns after a step: each rejected type sits out `length` steps; those that ran out are dropped."""
    updated = {task_type: until for task_type, until in cooldowns.items() if until > global_step + 1}
    if length > 0:
        updated.update(dict.fromkeys(rejected, global_step + 1 + length))
    return dict(sorted(updated.items()))
