"""Keeps a command within its budget: stops its work as soon as a limit is used up (TRN-12)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from services.trainer.domain.budget import BudgetLimits, Usage, reached, require_room
from services.trainer.domain.errors import BudgetReached
from services.trainer.use_cases.ports import Runs
from services.trainer.use_cases.summarize_run import FREE

T = TypeVar("T")


class Meter:
    """What a run's model calls cost since the meter was made; the store's records are the measure."""

    def __init__(self, runs: Runs, workspace: str, run_id: str, now: Callable[[], float]) -> None:
        self._runs, self._workspace, self._run_id, self._now = runs, workspace, run_id, now
        self._begun_at = now()
        self._at_start: Usage | None = None

    async def usage(self) -> Usage:
        """Calls, tokens and cache hits since the first reading, and seconds since the meter was made."""
        total = await self._total()
        if self._at_start is None:
            self._at_start = total
        start = self._at_start
        return Usage(
            calls=total.calls - start.calls,
            tokens=total.tokens - start.tokens,
            seconds=self._now() - self._begun_at,
            cache_hits=total.cache_hits - start.cache_hits,
        )

    async def _total(self) -> Usage:
        summaries = await self._runs.call_summaries(self._workspace, self._run_id)
        paid = [each for each in summaries if each.cache_status not in FREE]
        return Usage(
            calls=sum(each.call_count for each in paid),
            tokens=sum(each.prompt_tokens + each.completion_tokens for each in paid),
            cache_hits=sum(each.call_count for each in summaries) - sum(each.call_count for each in paid),
        )


async def within_budget(
    limits: BudgetLimits,
    meter: Meter,
    work: Callable[[Callable[[], Awaitable[None]]], Coroutine[None, None, T]],
    poll_seconds: float = 0.5,
) -> T:
    """The result of `work`, which is handed a check to await before each of its pieces.

    While it runs the meter is read every `poll_seconds`; once a limit is used up, the work is cancelled and
    BudgetReached raised. What was in flight then is all that it may overshoot by, and what was paid for is kept.
    """

    async def check() -> None:
        require_room(limits, await meter.usage())

    await check()
    task = asyncio.ensure_future(work(check))
    if limits == BudgetLimits():
        return await task
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=poll_seconds)
            if not task.done() and (reason := reached(limits, await meter.usage())):
                raise BudgetReached(reason)
        return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
