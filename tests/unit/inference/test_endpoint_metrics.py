"""INF-8, INF-9: an endpoint's breaker, attempts and queue show in the metrics as they are when these are read."""

from __future__ import annotations

import asyncio

from services.inference.adapters.endpoint_metrics import watch_endpoints
from services.inference.domain.breaker import Breaker
from services.inference.domain.chat import Role
from services.inference.domain.endpoint import Endpoint
from services.inference.use_cases.guarded_endpoint import GuardedEndpoint
from services.runtime.metrics import REGISTRY

NAME = "watched"


def _breaker() -> str:
    states = ("closed", "open", "half_open")
    shown = [
        s for s in states if REGISTRY.get_sample_value("videotree_endpoint_breaker", {"endpoint": NAME, "state": s})
    ]
    (state,) = shown
    return state


def _endpoint(clock: list[float], concurrency_limit: int = 1) -> GuardedEndpoint:
    endpoint = Endpoint(NAME, frozenset({Role.AGENT}), "http://host/v1", "m", concurrency_limit=concurrency_limit)
    guarded = GuardedEndpoint(endpoint, Breaker(3, cooldown_seconds=30), lambda: clock[0])
    watch_endpoints([guarded])
    return guarded


def test_inf_8_a_breakers_state_follows_time_though_nothing_calls() -> None:
    clock = [0.0]
    guarded = _endpoint(clock)
    assert _breaker() == "closed"
    guarded.force_open(30)
    assert _breaker() == "open"
    clock[0] = 31.0
    assert _breaker() == "half_open"
    guarded.reset()
    assert _breaker() == "closed"


async def test_inf_9_attempts_and_those_who_wait_are_shown() -> None:
    def shown() -> tuple[float | None, float | None]:
        labels = {"endpoint": NAME}
        return (
            REGISTRY.get_sample_value("videotree_endpoint_attempts_in_flight", labels),
            REGISTRY.get_sample_value("videotree_endpoint_calls_waiting", labels),
        )

    guarded, release = _endpoint([0.0], concurrency_limit=1), asyncio.Event()
    calls = [asyncio.create_task(guarded.run(release.wait)) for _ in range(3)]
    await asyncio.sleep(0)
    assert shown() == (1, 2)
    release.set()
    await asyncio.gather(*calls)
    assert shown() == (0, 0)
