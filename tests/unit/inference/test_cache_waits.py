"""INF-5: what a cache that is away, frozen or slow adds to a call, exactly, on a clock that nothing else moves."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.inference.adapters.redis_cache import RedisCache
from services.inference.domain.breaker import Breaker
from services.inference.domain.chat import CacheMode, CacheStatus, Completion, Timing
from services.inference.domain.outcome import AttemptFault, Outcome
from services.inference.domain.stored_answer import decode_completion
from services.inference.use_cases.call_endpoints import Candidate, RetryPolicy
from services.inference.use_cases.guarded_cache import GuardedCache
from services.inference.use_cases.guarded_endpoint import GuardedEndpoint
from services.inference.use_cases.ports import CacheFault
from services.inference.use_cases.shared_calls import CallKind, SharedCalls
from tests.builders.inference_parts import RecordingObserver, endpoint
from tests.fakes.virtual_clock import run_on_a_virtual_clock

MOST_ADDED_SECONDS = 0.05
FOREVER = 3600.0
UPSTREAM_SECONDS = 0.1


class DelayedCache:
    """Redis as its guard sees it: it keeps things, and each command takes the next delay; a negative one fails then."""

    backend = "redis"
    patience_seconds = RedisCache("redis://127.0.0.1:1/0").patience_seconds

    def __init__(self, delays) -> None:
        self._delays = iter(delays)
        self.kept: dict[str, bytes] = {}

    async def _pause(self) -> None:
        delay = next(self._delays)
        await asyncio.sleep(abs(delay))
        if delay < 0:
            raise CacheFault("connection refused")

    async def get(self, key):
        await self._pause()
        return self.kept.get(key)

    async def set(self, key, value, ttl_seconds):
        await self._pause()
        self.kept[key] = value


class House:
    """Calls over `width` endpoints of which only the last answers, through the real cache guard and single flight."""

    def __init__(self, cache, width: int) -> None:
        self._loop = asyncio.get_running_loop()
        self.observer = RecordingObserver()
        self._calls = SharedCalls(
            GuardedCache(cache, 60, self.observer, lambda _text: None), RetryPolicy(1, 0.0, 0.0), self.observer
        )
        names = [f"e{n}" for n in range(width)]
        self._last = names[-1]
        self._guarded = [
            GuardedEndpoint(endpoint("http://x", name), Breaker(10_000, 1), self._loop.time) for name in names
        ]
        self._kind = CallKind(self._attempt, decode_completion, lambda _: True)

    async def _attempt(self, where, _payload, _on_delta):
        if where.name != self._last:
            raise AttemptFault(Outcome.TRANSIENT, "down")
        await asyncio.sleep(UPSTREAM_SECONDS)
        return Completion("Hello", "", (), "stop", None, "m"), Timing(UPSTREAM_SECONDS)

    async def call(self, text: str, mode: CacheMode = CacheMode.USE):
        """The answer, and the seconds that the call took beyond its upstream's."""
        candidates = [
            Candidate(each, lambda where: (b"{}", f"llm_cache:none:{text}{where.name}")) for each in self._guarded
        ]
        began = self._loop.time()
        flight, _ = self._calls.join(self._kind, candidates, mode)
        answer = await flight.result(began + FOREVER)
        upstream = 0.0 if answer.status is CacheStatus.HIT else UPSTREAM_SECONDS
        return answer, self._loop.time() - began - upstream


@given(
    delays=st.lists(
        st.sampled_from([0.0, 0.001, 0.019, 0.0199, 0.02, 0.021, 0.3, FOREVER, -0.0001, -0.019, -1.0]),
        min_size=1,
        max_size=12,
    ),
    width=st.integers(1, 5),
    mode=st.sampled_from(list(CacheMode)),
)
def test_inf_5_no_cache_however_slow_adds_more_than_50_ms_to_a_call(delays, width, mode):
    async def calls():
        house = House(DelayedCache(itertools.cycle(delays)), width)
        return [await house.call(f"{n}", mode) for n in range(8)]

    for answer, added in run_on_a_virtual_clock(calls()):
        assert answer.value.content == "Hello"
        assert added <= MOST_ADDED_SECONDS


@pytest.mark.parametrize("width", [1, 5])
def test_inf_5_a_frozen_cache_adds_its_two_waits_then_one_and_then_nothing_for_a_second(width):
    async def calls():
        house = House(DelayedCache(itertools.repeat(FOREVER)), width)
        added = [(await house.call(f"{n}"))[1] for n in range(6)]
        await asyncio.sleep(1.0)
        return [*added, (await house.call("after the cooldown"))[1]]

    # The third failure in a row opens the cache's breaker; after its cooldown one look is its probe.
    expected = [0.04, 0.02, 0, 0, 0, 0, 0.02]
    assert run_on_a_virtual_clock(calls()) == pytest.approx(expected, abs=1e-9)


def test_inf_5_a_cache_that_is_slow_but_in_time_still_serves_hits():
    async def calls():
        house = House(DelayedCache(itertools.repeat(0.015)), 1)
        return [await house.call("same"), await house.call("same")]

    (first, added_first), (second, added_second) = run_on_a_virtual_clock(calls())
    assert (first.status, second.status) == (CacheStatus.MISS, CacheStatus.HIT)
    assert (added_first, added_second) == pytest.approx((0.03, 0.015), abs=1e-9)
