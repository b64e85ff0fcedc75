"""One upstream call that any number of identical callers share (INF-7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

from services.inference.domain.chat import Delta, joined
from services.inference.domain.errors import DeadlineExceeded

T = TypeVar("T")


class Flight(Generic[T]):
    """Runs in a task of its own, so that no caller's cancellation ends what others wait for.

    It ends early when the last caller has left. `deadline` is the latest of its callers'. `delivered` says that a
    streaming caller has been given a delta: from then on nothing may be tried again.
    """

    def __init__(self) -> None:
        self.delivered = False
        self.attempts = 0
        self.endpoint = ""
        self.deadline = 0.0
        self._deltas: list[Delta] = []
        self._news: set[asyncio.Event] = set()
        self._callers = 0
        self._task: asyncio.Task[T] | None = None
        self._on_abandon: Callable[[], None] = lambda: None

    def start(self, work: Callable[[Flight[T]], Awaitable[T]], on_end: Callable[[], None]) -> asyncio.Task[T]:
        """Begin; `on_end` is called once, when it has ended or when nobody waits any more."""

        async def run() -> T:
            return await work(self)

        self._on_abandon = on_end
        self._task = asyncio.get_running_loop().create_task(run())
        self._task.add_done_callback(self._ended)
        return self._task

    def begin_attempt(self, endpoint: str) -> Callable[[Delta], None]:
        """Count an attempt and return what takes its deltas."""
        self.attempts += 1
        self.endpoint = endpoint
        deltas = self._deltas

        def publish(delta: Delta) -> None:
            deltas.append(delta)
            for news in self._news:
                news.set()

        return publish

    def take_back(self) -> bool:
        """Forget the deltas of a failed attempt; False when a caller has been given some, so that none may follow.

        Nothing may be awaited between this and the decision that rests on it.
        """
        if self.delivered:
            return False
        self._deltas.clear()
        return True

    async def result(self, deadline: float) -> T:
        """The answer. Raises `DeadlineExceeded` at `deadline` (loop time), or what the flight raised."""
        task = self._join(deadline)
        try:
            await self._wait_until_done(task, deadline)
        finally:
            self._leave()
        return task.result()

    async def stream(self, deadline: float) -> AsyncGenerator[Delta, None]:
        """The deltas from the first on; afterwards `result` gives the answer, or raises what ended the flight.

        What came while the caller was busy with the last delta is one delta.
        """
        task = self._join(deadline)
        news = asyncio.Event()
        self._news.add(news)
        task.add_done_callback(lambda _: news.set())
        given = 0
        try:
            while True:
                if given < len(self._deltas):
                    self.delivered = True
                    waiting = self._deltas[given:]
                    given = len(self._deltas)
                    yield joined(waiting)
                elif task.done():
                    return
                else:
                    await _wait_for_news(news, deadline)
        finally:
            self._news.discard(news)
            self._leave()

    def _join(self, deadline: float) -> asyncio.Task[T]:
        assert self._task is not None, "join a flight after its start"  # noqa: S101 -- a fault of this package
        self._callers += 1
        self.deadline = max(self.deadline, deadline)
        return self._task

    def _leave(self) -> None:
        self._callers -= 1
        if self._callers == 0 and self._task is not None and not self._task.done():
            self._on_abandon()
            self._task.cancel()

    @staticmethod
    async def _wait_until_done(task: asyncio.Task[T], deadline: float) -> None:
        remaining = deadline - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait((task,), timeout=max(0.0, remaining))
        if not done:
            raise DeadlineExceeded("the deadline passed before the model had answered")

    def _ended(self, task: asyncio.Task[T]) -> None:
        self._on_abandon()
        if not task.cancelled():
            task.exception()  # whoever waited has it; nobody is left to hear of it otherwise


async def _wait_for_news(news: asyncio.Event, deadline: float) -> None:
    try:
        async with asyncio.timeout_at(deadline):
            await news.wait()
    except TimeoutError:
        raise DeadlineExceeded("the deadline passed before the model had answered") from None
    news.clear()
