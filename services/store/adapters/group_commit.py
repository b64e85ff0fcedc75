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

    A group holds at most `max_group` writes. Callers that were just answered come back within a moment, so a group
    waits for about as many writes as the last ones had, but never longer than `gather_seconds`. Where writes come one
    by one, nothing waits.
    """

    def __init__(self, engine: Engine, name: str, *, max_group: int = 512, gather_seconds: float = 0.004) -> None:
        self._engine = engine
        self._max_group = max_group
        self._gather_seconds = gather_seconds
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._expected = 1
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
        deadline = time.monotonic() + self._gather_seconds
        while len(group) < self._max_group:
            wait = deadline - time.monotonic() if len(group) < self._expected else 0.0
            try:
                write = self._queue.get(timeout=wait) if wait > 0 else self._queue.get_nowait()
            except queue.Empty:
                break
            if write is None:
                return group, False
            group.append(write)
        self._expected = max(len(group), self._expected - 1)
        return group, True

    def _commit(self, group: list[_Write]) -> list[Outcome]:
        batches = _batches(group)
        outcomes = self._commit_at_once(batches[0]) if len(batches) == 1 else None
        if outcomes is None:
            try:
                with self._engine.begin() as connection:
                    outcomes = [outcome for batch in batches for outcome in _execute(connection, batch)]
            except Exception as error:
                return [(None, error)] * len(group)
        return outcomes

    def _commit_at_once(self, batch: list[_Write]) -> list[Outcome] | None:
        """Commit a group that is one batch without savepoints, the usual case; None if it has to be taken apart."""
        try:
            with self._engine.begin() as connection:
                result = _merged(batch)(connection)
        except Exception as error:
            return [(None, error)] if len(batch) == 1 else None
        return [(result, None)] * len(batch)


def _execute(connection: Connection, batch: list[_Write]) -> list[Outcome]:
    if len(batch) > 1:
        merged = _attempt(connection, _merged(batch))
        if merged[1] is None:
            return [merged] * len(batch)
    return [_attempt(connection, _merged([write])) for write in batch]


def _merged(batch: list[_Write]) -> Callable[[Connection], object]:
    """Return what does the work of a whole batch: its one action, or its appends as one."""
    first = batch[0].work
    if callable(first):
        return first
    return first.merged([cast(Append, write.work) for write in batch[1:]]).execute if len(batch) > 1 else first.execute


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
