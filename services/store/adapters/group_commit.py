"""One writer per workspace database, with group commit (STO-5).

Writes gather on the event loop while a commit is on its way to the disk and share the next transaction; each is
answered only after the commit that holds it. The writing thread is woken once a group, not once a write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar, cast

from sqlalchemy import Connection, Engine

from services.store.adapters.commit_group import Append, Outcome, Work, commit_group
from services.store.domain.errors import StorageFailed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Write:
    work: Work
    answer: asyncio.Future[object]


class GroupCommitWriter:
    """The only writer of one database, used by one event loop; its thread owns the writing connection.

    A group holds at most `max_group` writes. Callers that were just answered come back within a moment, so a group
    waits for about as many writes as the last ones had, but never longer than `gather_seconds`. Where writes come one
    by one, nothing waits.
    """

    def __init__(self, engine: Engine, name: str, *, max_group: int = 512, gather_seconds: float = 0.004) -> None:
        self._engine = engine
        self._max_group = max_group
        self._gather_seconds = gather_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"store-writer-{name}")
        self._connection: Connection | None = None
        self._waiting: list[_Write] = []
        self._timer: asyncio.TimerHandle | None = None
        self._under_way: asyncio.Future[list[Outcome]] | None = None
        self._expected = 1
        self._closed = False

    async def append(self, work: Append) -> None:
        """Do a mergeable write; returns when it is on the disk."""
        await self._submit(work)

    async def run(self, action: Callable[[Connection], T]) -> T:
        """Run `action` in the writer's transaction; returns its result when the transaction is on the disk."""
        return cast(T, await self._submit(action))

    async def close(self) -> None:
        """Finish what waits and stop the thread; closing twice is no error."""
        self._closed = True
        self._begin_when_gathered()
        while self._under_way is not None:
            await asyncio.wait([self._under_way])
        await asyncio.get_running_loop().run_in_executor(None, self._stop)

    async def _submit(self, work: Work) -> object:
        if self._closed:
            raise StorageFailed("the database is closed: the store stops, or the workspace was replaced")
        write = _Write(work, asyncio.get_running_loop().create_future())
        self._waiting.append(write)
        self._begin_when_gathered()
        return await write.answer

    def _begin_when_gathered(self) -> None:
        if self._under_way is not None or not self._waiting:
            return
        if self._closed or len(self._waiting) >= self._expected:
            self._begin()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._gather_seconds, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        group, self._waiting = self._waiting[: self._max_group], self._waiting[self._max_group :]
        self._expected = max(len(group), self._expected - 1)
        work = [write.work for write in group]
        self._under_way = asyncio.get_running_loop().run_in_executor(self._thread, self._commit, work)
        self._under_way.add_done_callback(lambda done: self._finish(group, done))

    def _finish(self, group: list[_Write], done: asyncio.Future[list[Outcome]]) -> None:
        self._under_way = None
        for write, (result, error) in zip(group, done.result(), strict=True):
            if write.answer.done():
                continue  # the caller went away; the write itself stands
            if error is None:
                write.answer.set_result(result)
            else:
                write.answer.set_exception(error)
        self._begin_when_gathered()

    def _commit(self, group: list[Work]) -> list[Outcome]:
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
        except Exception as error:
            return [(None, error)] * len(group)
        return commit_group(self._connection, group)

    def _stop(self) -> None:
        self._thread.shutdown(wait=True)
        if self._connection is not None:
            self._connection.close()
        self._engine.dispose()
