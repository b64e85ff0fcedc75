"""A first-come-first-served limit on calls in flight (INF-9)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class SlotQueue:
    """At most `limit` holders at once; those who wait are served in the order of their coming.

    Unlike `asyncio.Semaphore` it tells how many wait, and can send all of them away. Belongs to one event loop.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_flight = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for a slot."""
        return len(self._queue)

    async def acquire(self) -> None:
        """Take a slot; a cancelled wait leaves nothing behind. Raises what `dismiss` makes."""
        if self.in_flight < self.limit and not self._queue:
            self.in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(turn)
            elif turn.exception() is None:
                self.release()
            raise

    def _forget(self, turn: asyncio.Future[None]) -> None:
        # `release` may have passed over it already, between the cancellation and this task's turn to run.
        if turn in self._queue:
            self._queue.remove(turn)

    def release(self) -> None:
        """Give the slot back, to the first who waits if any."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.in_flight -= 1

    def dismiss(self, make_error: Callable[[], Exception]) -> None:
        """Raise an error in everyone who waits."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_exception(make_error())
