"""Prometheus metrics of governed calls (INF-10). Labels hold names from the configuration only, never request text."""

from __future__ import annotations

from functools import cache

from services.inference.domain.outcome import Outcome
from services.inference.use_cases.ports import CallRecord
from services.runtime.metrics import counter, histogram

_CALLS = counter("videotree_model_calls", "Logical model calls", ["role", "outcome", "cache_status"])
_CALL_SECONDS = histogram("videotree_model_call_seconds", "Seconds from acceptance to answer", ["role", "cache_status"])
_FIRST_TOKEN_SECONDS = histogram("videotree_model_first_token_seconds", "Seconds to the first token", ["role"])
_TOKENS = counter("videotree_model_tokens", "Tokens of upstream answers, as the upstream counts them", ["role", "kind"])
_ATTEMPTS = counter("videotree_model_attempts", "Attempts at upstreams", ["endpoint", "outcome"])
_ATTEMPT_SECONDS = histogram("videotree_model_attempt_seconds", "Seconds of an attempt", ["endpoint"])
_CACHE = counter(
    "videotree_model_cache_events", "Looks at the response cache: hit, miss, stored, fault, skipped", ["event"]
)
CALL_ROWS_DROPPED = counter("videotree_model_call_rows_dropped", "Call records that never reached the store")


class MetricsObserver:
    """Implements `CallObserver` by counting. Finding a metric by its labels costs more than counting: each is kept."""

    def __init__(self) -> None:
        self._calls = cache(_CALLS.labels)
        self._call_seconds = cache(_CALL_SECONDS.labels)
        self._first_token_seconds = cache(_FIRST_TOKEN_SECONDS.labels)
        self._tokens = cache(_TOKENS.labels)
        self._attempts = cache(_ATTEMPTS.labels)
        self._attempt_seconds = cache(_ATTEMPT_SECONDS.labels)
        self._cache_events = cache(_CACHE.labels)

    def call_ended(self, record: CallRecord) -> None:
        """See `CallObserver`."""
        role, status = record.role.value, record.cache_status.value
        self._calls(role, record.outcome.value, status).inc()
        self._call_seconds(role, status).observe(record.timing.total_seconds)
        if record.timing.first_token_seconds is not None:
            self._first_token_seconds(role).observe(record.timing.first_token_seconds)
        if record.usage is not None and record.attempts and status != "joined":
            self._tokens(role, "prompt").inc(record.usage.prompt_tokens)
            self._tokens(role, "completion").inc(record.usage.completion_tokens)

    def attempt_ended(self, endpoint: str, outcome: Outcome, seconds: float) -> None:
        """See `CallObserver`."""
        self._attempts(endpoint, outcome.value).inc()
        self._attempt_seconds(endpoint).observe(seconds)

    def cache_used(self, event: str) -> None:
        """See `CallObserver`."""
        self._cache_events(event).inc()
