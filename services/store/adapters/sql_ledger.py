"""The port Ledger on a SQL database: one group-committing writer, a few readers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from services.store.adapters.appends import AnswerAppend, TableAppend
from services.store.adapters.group_commit import GroupCommitWriter
from services.store.adapters.sql_transaction import SqlTransaction
from services.store.domain.errors import StorageFailed
from services.store.use_cases.ports import LedgerReader, LedgerTransaction, Row

T = TypeVar("T")

_SIGNS_OF_A_FULL_DISK = ("database or disk is full", "No space left on device")


class SqlLedger:
    """One database; reads run in threads of their own, so the event loop never waits for the disk."""

    def __init__(self, name: str, writing: Engine, reading: Engine, readers: int) -> None:
        self._reading = reading
        self._writer = GroupCommitWriter(writing, name)
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix=f"store-reader-{name}")

    async def read(self, action: Callable[[LedgerReader], T]) -> T:
        """Return what `action` finds in one consistent view."""

        def in_thread() -> T:
            with self._reading.connect() as connection, connection.begin():
                return action(SqlTransaction(connection))

        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, in_thread)
        except SQLAlchemyError as error:
            raise storage_failed(error) from error

    async def write(self, action: Callable[[LedgerTransaction], T]) -> T:
        """Return what `action` returns, once all it wrote is durable."""
        try:
            return await self._writer.run(lambda connection: action(SqlTransaction(connection)))
        except SQLAlchemyError as error:
            raise storage_failed(error) from error

    async def append(self, table: str, rows: Sequence[Row]) -> None:
        """Upsert rows of one table."""
        try:
            await self._writer.append(TableAppend(table, rows))
        except SQLAlchemyError as error:
            raise storage_failed(error) from error

    async def append_answers(self, predictions: Sequence[Row], traces: Sequence[Row]) -> None:
        """Upsert predictions and traces."""
        try:
            await self._writer.append(AnswerAppend(predictions, traces))
        except SQLAlchemyError as error:
            raise storage_failed(error) from error

    @property
    def reading_engine(self) -> Engine:
        """The engine of the readers, for a copy of the database while it is in use."""
        return self._reading

    async def close(self) -> None:
        """Finish what is under way and close all connections."""
        await self._writer.close()
        await asyncio.to_thread(self._readers.shutdown, wait=True)
        self._reading.dispose()


def storage_failed(error: SQLAlchemyError) -> StorageFailed:
    """Return the domain error for a refusal of the database."""
    # The driver's own words only: SQLAlchemy's message repeats the statement with all its values.
    cause = getattr(error, "orig", None) or error
    words = f"{type(cause).__name__}: {str(cause)[:300]}"
    if any(sign in words for sign in _SIGNS_OF_A_FULL_DISK):
        return StorageFailed(f"the disk that holds the database is full ({words}); make room there, then go on")
    return StorageFailed(f"the database refused: {words}")
