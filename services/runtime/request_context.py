"""What a call carries with it through one process: its request id and its deadline."""

from __future__ import annotations

import random
import time
from contextvars import ContextVar
from typing import Any, Protocol

REQUEST_ID_KEY = "x-request-id"
_LONGEST_REQUEST_ID = 128

_request_id: ContextVar[str] = ContextVar("request_id", default="")
_ids = random.Random()  # noqa: S311 - ids are no secrets; its own, so that seeding the module's repeats none
_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class TimedContext(Protocol):
    """The part of a servicer context that knows the call's deadline."""

    def time_remaining(self) -> Any:
        """Seconds until the deadline, or None when the client set none."""
        ...


def current_request_id() -> str:
    """The id of the request being served; an empty string outside of a request."""
    return _request_id.get()


def remaining_seconds(context: TimedContext | None = None) -> float | None:
    """Seconds left until the deadline of `context`, or of the current request; None when it has no deadline."""
    if context is not None:
        left = context.time_remaining()
        return None if left is None else max(0.0, float(left))
    deadline = _deadline.get()
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def new_request_id() -> str:
    """A fresh id of 32 hexadecimal digits; it tells requests apart and guards nothing."""
    return f"{_ids.getrandbits(128):032x}"


def enter_request(request_id: str | None, seconds_left: float | None) -> str:
    """Makes this task that of one request and returns the request's id.

    An id that is absent, too long (over 128 characters) or not printable is replaced with a new one. gRPC runs each
    call in a task of its own, so what is set here ends with the call.
    """
    usable = request_id is not None and 0 < len(request_id) <= _LONGEST_REQUEST_ID and request_id.isprintable()
    chosen = request_id if request_id is not None and usable else new_request_id()
    _request_id.set(chosen)
    _deadline.set(None if seconds_left is None else time.monotonic() + seconds_left)
    return chosen
