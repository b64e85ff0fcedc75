"""Limits on what a run may spend (TRN-12). Pure: the usage so far comes in as an argument."""

from __future__ import annotations

from dataclasses import dataclass

from services.trainer.domain.errors import BudgetReached


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent so far: upstream model calls (cache hits are free), tokens in and out, seconds of wall time."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cache_hits: int = 0


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """None means without limit."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_minutes: float | None = None


def reached(limits: BudgetLimits, usage: Usage) -> str | None:
    """The first limit that is used up, in words; None while there is room under all of them."""
    if limits.max_calls is not None and usage.calls >= limits.max_calls:
        return f"{usage.calls} model calls made, --max-calls is {limits.max_calls}"
    if limits.max_tokens is not None and usage.tokens >= limits.max_tokens:
        return f"{usage.tokens} tokens used, --max-tokens is {limits.max_tokens}"
    if limits.max_minutes is not None and usage.seconds >= limits.max_minutes * 60:
        return f"{usage.seconds / 60:.1f} minutes passed, --max-minutes is {limits.max_minutes:g}"
    return None


def require_room(limits: BudgetLimits, usage: Usage) -> None:
    """Raises BudgetReached when a limit is used up."""
    if reason := reached(limits, usage):
        raise BudgetReached(reason)
