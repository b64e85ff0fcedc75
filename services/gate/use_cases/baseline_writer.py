"""Writing fresh base results back to the cache: one write in flight, and all that came meanwhile in the next."""

from __future__ import annotations

import asyncio

from services.gate.use_cases.ports import BaselineRow, Store


class BaselineWriter:
    """Groups rows so that a round costs few writes. `run` ends after `close`, once every row is durable."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pending: list[BaselineRow] = []
        self._wake = asyncio.Event()
        self._closed = False

    def add(self, row: BaselineRow) -> None:
        """Queue a row; it is durable when `run` has ended."""
        self._pending.append(row)
        self._wake.set()

    def close(self) -> None:
        """No more rows will come."""
        self._closed = True
        self._wake.set()

    async def run(self) -> None:
        """Write until closed and empty. Raises NeighbourFailed when a write failed."""
        while self._pending or not self._closed:
            await self._wake.wait()
            self._wake.clear()
            rows, self._pending = self._pending, []
            if rows:
                await self._store.cache_results(rows)
