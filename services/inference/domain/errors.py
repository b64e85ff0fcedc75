"""Errors of the inference service.

InferenceError
 ├── InvalidRequest            the caller's request is wrong; nothing was sent
 │    └── RequestTooLarge      its messages are above the limit
 ├── RoleNotConfigured         no endpoint serves the role
 ├── UnknownEndpoint           an operator named an endpoint that is not configured
 ├── CacheUnavailable          an operator's question to the response cache was not answered
 ├── DeadlineExceeded          the caller's deadline passed
 ├── EndpointsUnavailable      every endpoint's breaker is open; says how long to wait
 └── UpstreamError             an upstream was called and did not give a complete answer
      ├── UpstreamRejected     PERMANENT: the same call would fail again
      ├── UpstreamTransient    TRANSIENT: retries were used up, or none was allowed
      ├── UpstreamTruncated    TRUNCATED: the stream ended without a terminal signal
      └── StreamInterrupted    text had reached a streaming caller before the fault, so that nothing is retried
"""

from __future__ import annotations

from collections.abc import Mapping

from services.inference.domain.outcome import AttemptFault, Outcome


class InferenceError(Exception):
    """Base of all errors of this service; `field` is a request field's path, `metadata` goes to the caller."""

    def __init__(self, message: str, *, field: str | None = None, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.metadata: Mapping[str, str] = dict(metadata or {})


class InvalidRequest(InferenceError):
    """The caller's request is wrong; `field` names the field."""


class RequestTooLarge(InvalidRequest):
    """The messages of a request, images included, are larger than the service accepts."""


class RoleNotConfigured(InferenceError):
    """No endpoint serves the role; the message names the variables to set."""


class UnknownEndpoint(InferenceError):
    """No endpoint has this name."""


class CacheUnavailable(InferenceError):
    """The response cache did not answer an operator's question."""


class DeadlineExceeded(InferenceError):
    """The caller's deadline passed before there was an answer."""


class EndpointsUnavailable(InferenceError):
    """Every endpoint of the role has an open breaker; `wait_seconds` is the time until the first may be tried."""

    def __init__(self, message: str, *, wait_seconds: float) -> None:
        super().__init__(message, metadata={"retry_after_seconds": f"{wait_seconds:.3f}"})
        self.wait_seconds = wait_seconds


class UpstreamError(InferenceError):
    """An upstream was called and gave no complete answer.

    `endpoint` is its name, `outcome` that of its last attempt, `code` the HTTP status or the code of an in-stream
    error as text (`None` for transport faults).
    """

    def __init__(self, message: str, *, endpoint: str, outcome: Outcome, code: str | None = None) -> None:
        metadata = {"endpoint": endpoint, "outcome": outcome.value}
        if code is not None:
            metadata["upstream_code"] = code
        super().__init__(message, metadata=metadata)
        self.endpoint = endpoint
        self.outcome = outcome
        self.code = code


class UpstreamRejected(UpstreamError):
    """The upstream refused the request; the same call would be refused again."""


class UpstreamTransient(UpstreamError):
    """The upstream failed in a way that a later call may not meet."""


class UpstreamTruncated(UpstreamError):
    """The upstream's stream ended without a terminal signal."""


class StreamInterrupted(UpstreamError):
    """The upstream failed after text had reached a streaming caller."""


def upstream_error(fault: AttemptFault, endpoint: str, *, delivered: bool) -> UpstreamError:
    """The error that the fault of the last attempt is to a caller; `delivered` says that the caller has got text."""
    kind = StreamInterrupted if delivered else _ERROR_OF_OUTCOME[fault.outcome]
    return kind(f"{endpoint}: {fault.message}", endpoint=endpoint, outcome=fault.outcome, code=fault.code)


_ERROR_OF_OUTCOME: Mapping[Outcome, type[UpstreamError]] = {
    Outcome.TRUNCATED: UpstreamTruncated,
    Outcome.TRANSIENT: UpstreamTransient,
    Outcome.PERMANENT: UpstreamRejected,
}
