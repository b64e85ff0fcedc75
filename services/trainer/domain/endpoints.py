"""Endpoints of the inference service and its cache, as `models`, `cache` and `doctor` show them. Plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One upstream endpoint; `breaker_state` is closed, open or half_open."""

    name: str
    base_url: str
    model: str
    roles: tuple[str, ...]
    breaker_state: str
    consecutive_failures: int
    retry_after_seconds: float | None
    in_flight: int
    waiting: int
    concurrency_limit: int
    attempt_count: int
    failure_count: int
    last_error: str


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Figures about the response cache since the inference service started; `backend` is redis or disk."""

    backend: str
    entry_count: int
    size_bytes: int | None
    hit_count: int
    miss_count: int
    error_count: int
    ttl_seconds: float


def error_rate(before: tuple[Endpoint, ...], after: tuple[Endpoint, ...]) -> float | None:
    """Share of attempts between two looks that did not end OK, in [0, 1]; None when there were none."""
    attempts = sum(each.attempt_count for each in after) - sum(each.attempt_count for each in before)
    failures = sum(each.failure_count for each in after) - sum(each.failure_count for each in before)
    return failures / attempts if attempts > 0 else None
