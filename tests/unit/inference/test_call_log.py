"""INF-10: rows reach the store in batches, off the calls' path; what is given up is counted."""

import asyncio
from datetime import UTC, datetime

import grpc
import pytest

from services.inference.adapters import call_log
from services.inference.adapters.call_log import StoreCallLog, call_row
from services.inference.domain.chat import CacheStatus, CallOrigin, Role, Timing, Usage
from services.inference.domain.outcome import Outcome
from services.inference.use_cases.ports import CallRecord
from tests.builders.inference_parts import eventually


class Away(grpc.aio.AioRpcError):
    def __init__(self, code):
        super().__init__(code, grpc.aio.Metadata(), grpc.aio.Metadata())


class Store:
    """Takes rows, or fails with `code`."""

    def __init__(self):
        self.batches, self.code, self.tries = [], None, 0

    async def append(self, request, *, timeout):
        self.tries += 1
        await asyncio.sleep(0)
        if self.code is not None:
            raise Away(self.code)
        self.batches.append((request.workspace, [row.call_id for row in request.calls]))

    @property
    def ids(self):
        return [call_id for _, ids in self.batches for call_id in ids]


def record(number, workspace="w", **fields):
    values = {
        "call_id": str(number), "role": Role.AGENT, "origin": CallOrigin(workspace, "run", "parent"),
        "started": datetime(2026, 11, 29, tzinfo=UTC), "outcome": Outcome.OK, "cache_status": CacheStatus.MISS,
        "endpoint": "e", "attempts": 1, "usage": Usage(1, 2, 3), "timing": Timing(1.5, 0.25, 0.125),
    }  # fmt: skip
    return CallRecord(**{**values, **fields})


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(call_log, "_FLUSH_SECONDS", 0.01)
    monkeypatch.setattr(call_log, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(call_log, "_BATCH", 10)


@pytest.fixture
def store():
    return Store()


@pytest.fixture
async def log(store):
    dropped = []
    kept = StoreCallLog(store.append, dropped.append)
    kept.lost = dropped
    yield kept
    await kept.close(0.1)


async def test_inf_10_rows_go_in_batches_by_workspace_in_order(log, store):
    for number in range(25):
        log.call_ended(record(number, "w" if number < 12 else "v"))
    await eventually(lambda: len(store.ids) == 25)
    assert store.ids == [str(n) for n in range(25)]
    assert [(w, len(ids)) for w, ids in store.batches] == [("w", 10), ("w", 2), ("v", 8), ("v", 5)]


async def test_inf_10_rows_wait_while_the_store_is_away_and_none_is_lost_or_doubled(log, store):
    store.code = grpc.StatusCode.UNAVAILABLE
    for number in range(15):
        log.call_ended(record(number))
    await eventually(lambda: store.tries >= 3)
    store.code = None
    await eventually(lambda: len(store.ids) == 15)
    assert store.ids == [str(n) for n in range(15)]
    assert log.lost == []


async def test_inf_10_rows_that_the_store_refuses_are_dropped_and_counted(log, store):
    store.code = grpc.StatusCode.NOT_FOUND
    for number in range(7):
        log.call_ended(record(number))
    await eventually(lambda: sum(log.lost) == 7)
    store.code = None
    log.call_ended(record("next"))
    await eventually(lambda: store.ids == ["next"])


async def test_inf_10_too_many_waiting_rows_drop_the_oldest(log, store, monkeypatch):
    monkeypatch.setattr(call_log, "_MAX_PENDING", 5)
    store.code = grpc.StatusCode.UNAVAILABLE
    for number in range(8):
        log.call_ended(record(number))
    assert sum(log.lost) == 3
    store.code = None
    await eventually(lambda: store.ids == ["3", "4", "5", "6", "7"])


async def test_inf_10_closing_writes_what_waits_and_counts_what_it_can_not(store):
    lost = []
    log = StoreCallLog(store.append, lost.append)
    for number in range(30):
        log.call_ended(record(number))
    await log.close()
    assert len(store.ids) == 30
    log = StoreCallLog(store.append, lost.append)
    store.code = grpc.StatusCode.UNAVAILABLE
    log.call_ended(record(31))
    await log.close(0.1)
    assert lost == [1]


def test_inf_10_a_row_says_what_is_known_and_nothing_else():
    row = call_row(record(1))
    assert (row.outcome, row.cache_status, row.role, row.run_id, row.parent_call) == (
        "OK",
        "miss",
        "agent",
        "run",
        "parent",
    )
    assert (row.prompt_tokens, row.completion_tokens, row.latency_duration.nanos) == (1, 2, 500_000_000)
    bare = call_row(record(1, usage=None, timing=Timing(0.5), outcome=Outcome.CANCELLED))
    assert not any(
        map(bare.HasField, ("prompt_tokens", "completion_tokens", "first_token_duration", "largest_gap_duration"))
    )
