"""One writer per workspace database, with group commit (STO-5).

Writes queue up while a commit is on its way to the disk and share the next transaction. Each one runs in its own
savepoint, so that its failure leaves its neighbours alone, and it is answered only after the commit that holds it.
Neighbouring appends that touch different rows become one multi-row statement; if that fails, they are repeated singly.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from sqlalchemy import Connection, Engine

from services.store.domain.errors import StorageFailed

T = TypeVar("T")
Outcome = tuple[object, BaseException | None]


class Append(Protocol):
    """A write that can share its statements with others of its kind."""

    def keys(self) -> set[Any]:
        """Return what it touches; two appends with a common key are never merged."""

    def merged(self, others: Sequence[Append]) -> Append:
        """Return one append that does what this one and the others, of the same class, do."""

    def execute(self, connection: Connection) -> None:
        """Do it."""


@dataclass(slots=True)
class _Write:
    work: Append | Callable[[Connection], object]
    future: asyncio.Future[object]
    loop: asyncio.AbstractEventLoop


class GroupCommitWriter:
    """A thread that owns the only writing connection of one database.

    A group holds at most `max_group` writes; after a group of several, the next one waits up to `gather_seconds` for as
    many again, because callers just answered come back within a moment. A lone writer never waits.
    """

    def __init__(self, engine: Engine, name: str, *, max_group: int = 512, gather_seconds: float = 0.002) -> None:
        self._engine = engine
        self._max_group = max_group
        self._gather_seconds = gather_seconds
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._last_group = 1
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"store-writer-{name}", daemon=True)
        self._thread.start()

    async def append(self, work: Append) -> None:
        """Do a mergeable write; returns when it is on the disk."""
        await self._submit(work)

    async def run(self, action: Callable[[Connection], T]) -> T:
        """Run `action` in the writer's transaction; returns its result when the transaction is on the disk."""
        return cast(T, await self._submit(action))

    def close(self) -> None:
        """Finish what is queued and stop the thread; closing twice is no error."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join()

    async def _submit(self, work: Append | Callable[[Connection], object]) -> object:
        if self._closed:
            raise StorageFailed("the database is closed: the store stops, or the workspace was replaced")
        loop = asyncio.get_running_loop()
        write = _Write(work, loop.create_future(), loop)
        self._queue.put(write)
        return await write.future

    def _run(self) -> None:
        open_for_work = True
        while open_for_work:
            group, open_for_work = self._next_group()
            if group:
                _answer(list(zip(group, self._commit(group), strict=True)))
        self._engine.dispose()

    def _next_group(self) -> tuple[list[_Write], bool]:
        first = self._queue.get()
        if first is None:
            return [], False
        group = [first]
        wanted, deadline = self._last_group, time.monotonic() + self._gather_seconds
        while len(group) < self._max_group:
            wait = deadline - time.monotonic() if len(group) < wanted else 0.0
            try:
                write = self._queue.get(timeout=wait) if wait > 0 else self._queue.get_nowait()
            except queue.Empty:
                break
            if write is None:
                return group, False
            group.append(write)
        self._last_group = len(group)
        return group, True

    def _commit(self, group: list[_Write]) -> list[Outcome]:
        try:
            with self._engine.begin() as connection:
                outcomes = [outcome for batch in _batches(group) for outcome in _execute(connection, batch)]
        except Exception as error:
            return [(None, error)] * len(group)
        return outcomes


def _execute(connection: Connection, batch: list[_Write]) -> list[Outcome]:
    if len(batch) > 1:
        first, *others = (cast(Append, write.work) for write in batch)
        merged = _attempt(connection, first.merged(others).execute)
        if merged[1] is None:
            return [merged] * len(batch)
    return [_attempt(connection, write.work if callable(write.work) else write.work.execute) for write in batch]


def _attempt(connection: Connection, action: Callable[[Connection], object]) -> Outcome:
    savepoint = connection.begin_nested()
    try:
        result = action(connection)
    except Exception as error:
        savepoint.rollback()
        return None, error
    savepoint.commit()
    return result, None


def _batches(group: list[_Write]) -> list[list[_Write]]:
    """Split a group into runs of appends of one class that touch different rows; an action stands alone."""
    batches: list[list[_Write]] = []
    touched: set[Any] = set()
    for write in group:
        keys = set() if callable(write.work) else write.work.keys()
        joins = batches and not callable(write.work) and type(batches[-1][0].work) is type(write.work)
        if joins and touched.isdisjoint(keys):
            batches[-1].append(write)
            touched |= keys
        else:
            batches.append([write])
            touched = keys
    return batches


def _answer(answered: list[tuple[_Write, Outcome]]) -> None:
    """Settle the futures, with one call into each event loop that waits."""
    for loop in {write.loop for write, _ in answered}:
        mine = [(write.future, outcome) for write, outcome in answered if write.loop is loop]
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, mine)


def _settle(answers: list[tuple[asyncio.Future[object], Outcome]]) -> None:
    for future, (result, error) in answers:
        if future.done():
            continue  # the caller went away; the write itself stands
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
