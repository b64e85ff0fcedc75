"""Running queued arms as wide as the slots allow, and never wider. Knows no statistics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from services.gate.use_cases.launch_queue import Launch, LaunchQueue

T = TypeVar("T")


class Scheduler:
    """Question slots shared by all types, strictly first come, first served.

    An arm takes all its slots at once, so two arms never wait for each other's; the arm at the head waits until enough
    are free and nothing overtakes it, so a large unit never starves. A unit larger than the width takes the whole width
    and runs alone. `peak_in_flight`: the most questions that were in flight, such a unit counted by the width.
    """

    def __init__(self, queue: LaunchQueue, width: int) -> None:
        self._queue = queue
        self._width = width
        self._free = width
        self._in_flight: dict[asyncio.Task[None], Launch] = {}
        self._changed = asyncio.Event()
        self.peak_in_flight = 0

    async def run(
        self,
        launched: Callable[[Launch], None],
        answer: Callable[[Launch], Awaitable[T]],
        settle: Callable[[Launch, T], None],
    ) -> None:
        """Run every arm that the queue gives out, until it is empty and nothing is in flight.

        For each arm: `launched` when it starts, `answer` while it holds its slots, then `settle` with what it returned.
        If any of them raises, or the caller is cancelled, all arms in flight are cancelled and awaited.
        """
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                while (launch := self._queue.peek()) is not None and self._slots(launch) <= self._free:
                    self._queue.pop()
                    launched(launch)
                    self._start(group, launch, answer, settle)
                if not self._in_flight:
                    return
                await self._changed.wait()

    def cancel(self, lane: int) -> None:
        """Cancel what is in flight of a type."""
        for task, launch in self._in_flight.items():
            if launch.lane == lane and task is not asyncio.current_task():
                task.cancel()

    def _start(
        self,
        group: asyncio.TaskGroup,
        launch: Launch,
        answer: Callable[[Launch], Awaitable[T]],
        settle: Callable[[Launch, T], None],
    ) -> None:
        self._free -= self._slots(launch)
        self.peak_in_flight = max(self.peak_in_flight, self._width - self._free)
        task = group.create_task(_run_one(launch, answer, settle))
        self._in_flight[task] = launch
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._free += self._slots(self._in_flight.pop(task))
        self._changed.set()

    def _slots(self, launch: Launch) -> int:
        return min(launch.slots, self._width)


async def _run_one(
    launch: Launch, answer: Callable[[Launch], Awaitable[T]], settle: Callable[[Launch, T], None]
) -> None:
    settle(launch, await answer(launch))
