"""The one classification of an attempt (INF-2); retry, breaker, cache and metrics read it and never classify again."""

from __future__ import annotations

from collections.abc import Iterable
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
_REDACTED = "[redacted]"
_SHORTEST_PART = 4
_SHORTEST_KEY = 16
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


class AttemptFault(Exception):
    """An attempt that did not end OK, classified once and for all where it was noticed.

    `code` is the HTTP status or the in-stream code as text, `None` for transport faults. `retry_after_seconds` is
    what the upstream asked for, already checked to be finite and not negative.
    """

    def __init__(
        self, outcome: Outcome, message: str, *, code: str | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message
        self.code = code
        self.retry_after_seconds = retry_after_seconds

    def without(self, secret: str | None) -> AttemptFault:
        """The same fault, its texts without `secret`: upstreams do echo a key that they refuse."""
        if not secret:
            return self
        code = None if self.code is None else _without(self.code, secret)
        return AttemptFault(
            self.outcome, _without(self.message, secret), code=code, retry_after_seconds=self.retry_after_seconds
        )


def require_no_key(texts: Iterable[str], api_key: str | None) -> None:
    """Raises a PERMANENT `AttemptFault` if an answer repeats the key it was asked with: it would be kept in rows.

    A key of fewer than 16 characters is a placeholder (`EMPTY`, `ollama`), which may stand in any text.
    """
    if api_key and len(api_key) >= _SHORTEST_KEY and any(api_key in text for text in texts):
        message = "the answer repeats the API key; don't trust this endpoint, and renew the key"
        raise AttemptFault(Outcome.PERMANENT, message, code="key_in_answer")


def outcome_of_code(*codes: object) -> Outcome:
    """The outcome of an error inside a body, from its `code` and `type`, the first that says something.

    Numbers are read as HTTP statuses (one below 400 says nothing). A code that nobody knows is TRANSIENT: the
    upstream had accepted the request and failed while answering.
    """
    for code in codes:
        status = _as_status(code)
        if status is not None:
            return outcome_of_status(status)
        if isinstance(code, str) and code.lower() in _PERMANENT_CODES:
            return Outcome.PERMANENT
    return Outcome.TRANSIENT


def _without(text: str, secret: str) -> str:
    text = text.replace(secret, _REDACTED)
    # A text that was cut short may end inside the secret.
    body = text.removesuffix("…")
    for length in range(len(secret) - 1, _SHORTEST_PART - 1, -1):
        if body.endswith(secret[:length]):
            return body[:-length] + _REDACTED
    return text


def _as_status(code: object) -> int | None:
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
        code = int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599 else None


_PERMANENT_CODES = frozenset({
    "authentication_error", "badrequesterror", "content_filter", "context_length_exceeded", "exceed_context_size_error",
    "insufficient_quota", "invalid_api_key", "invalid_request_error", "model_not_found", "not_found_error",
    "not_supported_error", "permission_error", "unsupported_parameter",
})  # fmt: skip
