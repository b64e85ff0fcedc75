"""Writes `llm_calls` rows to the store in batches, off every call's path (INF-10)."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from itertools import groupby, islice
from typing import Protocol

import grpc
from google.protobuf.duration_pb2 import Duration
from videotree.store.v1 import llm_call_pb2, run_service_pb2

from services.inference.domain.outcome import Outcome
from services.inference.use_cases.ports import CallRecord

_BATCH = 500
_MAX_PENDING = 20_000
_FLUSH_SECONDS = 0.5
_RETRY_SECONDS = 2.0
_RPC_SECONDS = 10.0
_TRANSIENT = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
}


class AppendCalls(Protocol):
    """The store's `AppendLlmCalls`; appending a `call_id` again changes nothing."""

    def __call__(self, request: run_service_pb2.AppendLlmCallsRequest, *, timeout: float) -> object:
        """An awaitable of the response; raises `grpc.RpcError`."""
        ...


class StoreCallLog:
    """Implements `CallObserver`. Rows wait in memory, at most 20,000; `dropped` hears of each that is given up.

    A row is given up when the store refuses it (such as for an unknown workspace), when too many wait, or when the
    store is still away at `close`.
    """

    def __init__(self, append: AppendCalls, dropped: Callable[[int], None]) -> None:
        self._append = append
        self._dropped = dropped
        self._pending: deque[CallRecord] = deque()
        self._stopping = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._flush_forever())

    def call_ended(self, record: CallRecord) -> None:
        """Take a row."""
        if len(self._pending) >= _MAX_PENDING:
            self._pending.popleft()
            self._dropped(1)
        self._pending.append(record)

    def attempt_ended(self, endpoint: str, outcome: Outcome, seconds: float) -> None:
        """Attempts have no rows of their own."""

    def cache_used(self, event: str) -> None:
        """Nor has the cache."""

    async def close(self, grace_seconds: float = 5.0) -> None:
        """Write what waits, for at most `grace_seconds`; what remains is dropped."""
        self._stopping.set()
        with contextlib.suppress(TimeoutError):
            # A write under way is waited for, not broken off: the store may have it already.
            async with asyncio.timeout(grace_seconds):
                await self._task
        if self._pending:
            self._dropped(len(self._pending))
            self._pending.clear()

    async def _flush_forever(self) -> None:
        pause, last = _FLUSH_SECONDS, False
        while not last:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
            last = self._stopping.is_set()
            pause = _FLUSH_SECONDS if await self._flush() else _RETRY_SECONDS

    async def _flush(self) -> bool:
        """Write everything that waits; False when the store is away. A row leaves the queue only when it is settled."""
        while self._pending:
            batch = list(islice(self._pending, _BATCH))
            for workspace, records in groupby(batch, key=lambda record: record.origin.workspace):
                rows = list(records)
                if not await self._write(workspace, rows):
                    return False
                self._settle(rows)
        return True

    async def _write(self, workspace: str, records: list[CallRecord]) -> bool:
        request = run_service_pb2.AppendLlmCallsRequest(workspace=workspace, calls=map(call_row, records))
        try:
            await self._append(request, timeout=_RPC_SECONDS)  # type: ignore[misc]
        except grpc.RpcError as error:
            if isinstance(error, grpc.aio.AioRpcError) and error.code() in _TRANSIENT:
                return False
            self._dropped(len(records))
        return True

    def _settle(self, rows: list[CallRecord]) -> None:
        # An overflow may have dropped rows of this batch from the left in the meantime.
        settled = {record.call_id for record in rows}
        while self._pending and self._pending[0].call_id in settled:
            self._pending.popleft()


def call_row(record: CallRecord) -> llm_call_pb2.LlmCall:
    """The row of one logical call."""
    timing, usage = record.timing, record.usage
    row = llm_call_pb2.LlmCall(
        call_id=record.call_id,
        role=record.role.value,
        endpoint=record.endpoint,
        outcome=record.outcome.name,
        attempts=record.attempts,
        cache_status=record.cache_status.value,
        parent_call=record.origin.parent_call,
        run_id=record.origin.run_id,
        latency_duration=_duration(timing.total_seconds),
        first_token_duration=_duration(timing.first_token_seconds),
        largest_gap_duration=_duration(timing.largest_gap_seconds),
        prompt_tokens=None if usage is None else usage.prompt_tokens,
        completion_tokens=None if usage is None else usage.completion_tokens,
    )
    row.started_time.FromDatetime(record.started)
    return row


def _duration(seconds: float | None) -> Duration | None:
    if seconds is None:
        return None
    # Five times as fast as Duration.FromTimedelta; a row has three.
    whole, rest = divmod(seconds, 1)
    return Duration(seconds=int(whole), nanos=int(rest * 1e9))
