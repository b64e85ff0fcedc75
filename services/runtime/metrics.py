"""Prometheus metrics: one registry per process, the metrics of every gRPC server, and the page that shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    start_http_server,
)

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)

_LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)


def counter(name: str, description: str, labels: Sequence[str] = ()) -> Counter:
    """A counter of this process; call once per name, at module level."""
    return Counter(name, description, labels, registry=REGISTRY)


def gauge(name: str, description: str, labels: Sequence[str] = ()) -> Gauge:
    """A gauge of this process; call once per name, at module level."""
    return Gauge(name, description, labels, registry=REGISTRY)


def histogram(
    name: str, description: str, labels: Sequence[str] = (), buckets: Sequence[float] = _LATENCY_BUCKETS
) -> Histogram:
    """A histogram of this process (default buckets: 1 ms to 30 minutes); call once per name, at module level."""
    return Histogram(name, description, labels, registry=REGISTRY, buckets=buckets)


CALLS = counter("videotree_grpc_calls", "Calls answered, by method and status code", ["method", "code"])
CALL_SECONDS = histogram(
    "videotree_grpc_call_seconds", "Seconds from a call's arrival to its status", ["method", "code"]
)
CALLS_IN_FLIGHT = gauge("videotree_grpc_calls_in_flight", "Calls being served now", ["method"])


class MethodMetrics:
    """The metrics of one gRPC method; looking a child up by its labels costs more than counting, so each is kept."""

    def __init__(self, method: str) -> None:
        self.method = method
        self._in_flight = CALLS_IN_FLIGHT.labels(method)
        self._by_code: dict[str, tuple[Counter, Histogram]] = {}

    def arrived(self) -> None:
        """Counts a call as being served."""
        self._in_flight.inc()

    def answered(self, code: str, seconds: float) -> None:
        """Counts a call as answered with the status code of this name, after `seconds`."""
        self._in_flight.dec()
        found = self._by_code.get(code)
        if found is None:
            found = (CALLS.labels(self.method, code), CALL_SECONDS.labels(self.method, code))
            self._by_code[code] = found
        calls, call_seconds = found
        calls.inc()
        call_seconds.observe(seconds)


def serve_metrics(host: str, port: int) -> Callable[[], None]:
    """Serves `/metrics` on `host:port` from a thread and returns the function that stops it.

    Raises OSError when the port can't be bound.
    """
    server, thread = start_http_server(port, addr=host, registry=REGISTRY)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
