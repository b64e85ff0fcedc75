"""Prometheus metrics of endpoints as they are now: breaker, attempts in flight, queue (INF-8, INF-9)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from services.inference.domain.breaker import BreakerState
from services.inference.use_cases.guarded_endpoint import GuardedEndpoint
from services.runtime.metrics import gauge

_BREAKER = gauge("videotree_endpoint_breaker", "1 for the state that the breaker is in", ["endpoint", "state"])
_IN_FLIGHT = gauge("videotree_endpoint_attempts_in_flight", "Attempts at an endpoint now", ["endpoint"])
_WAITING = gauge("videotree_endpoint_calls_waiting", "Calls that wait for a slot of an endpoint", ["endpoint"])


def watch_endpoints(endpoints: Iterable[GuardedEndpoint]) -> None:
    """Shows each endpoint's breaker, attempts and queue as they are whenever the metrics are read."""
    for guarded in endpoints:
        name = guarded.endpoint.name
        for state in BreakerState:
            _BREAKER.labels(name, state.value).set_function(partial(_is_in, guarded, state))
        _IN_FLIGHT.labels(name).set_function(partial(_in_flight, guarded))
        _WAITING.labels(name).set_function(partial(_waiting, guarded))


def _is_in(guarded: GuardedEndpoint, state: BreakerState) -> float:
    return float(guarded.status().breaker_state is state)


def _in_flight(guarded: GuardedEndpoint) -> float:
    return guarded.status().in_flight


def _waiting(guarded: GuardedEndpoint) -> float:
    return guarded.status().waiting
