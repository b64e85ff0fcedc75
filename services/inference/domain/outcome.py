"""The one classification of an attempt (INF-2); retry, breaker, cache and metrics read it and never classify again."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """How one attempt at an upstream ended."""

    OK = "ok"
    """A complete answer: a terminal signal was seen."""
    TRUNCATED = "truncated"
    """The stream ended without a terminal signal, whatever it carried."""
    TRANSIENT = "transient"
    """A fault that a later attempt may not meet."""
    PERMANENT = "permanent"
    """The same request would fail again."""
    CANCELLED = "cancelled"
    """The caller went away, or its deadline passed; says nothing about the upstream."""

    @property
    def retryable(self) -> bool:
        """Whether another attempt may help; the same outcomes count against an endpoint's breaker."""
        return self in _RETRYABLE


_RETRYABLE = frozenset({Outcome.TRUNCATED, Outcome.TRANSIENT})
_TRANSIENT_4XX = frozenset({408, 425, 429})


def outcome_of_status(status: int) -> Outcome:
    """The outcome of an HTTP status, or of an in-stream error with that code.

    2xx is OK (the body decides further); 408, 425, 429 and 5xx are TRANSIENT; everything else, redirects too, is
    PERMANENT: the same request would get the same answer.
    """
    if 200 <= status < 300:
        return Outcome.OK
    if status in _TRANSIENT_4XX or 500 <= status < 600:
        return Outcome.TRANSIENT
    return Outcome.PERMANENT
