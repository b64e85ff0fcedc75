"""What the governed model needs from outside, and the port by which the agent calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from services.inference.domain.chat import (
    CacheMode,
    CacheStatus,
    CallOrigin,
    ChatRequest,
    ChatResult,
    EmbedRequest,
    EmbedResult,
    Role,
    Timing,
    Usage,
)
from services.inference.domain.endpoint import Endpoint
from services.inference.domain.outcome import Outcome

NO_ORIGIN = CallOrigin()


class ChatModel(Protocol):
    """A governed model in this process: cached, retried, guarded by breakers.

    `salt` becomes a part of the cache key (`None` is a value of its own). `deadline` is the `asyncio` loop time, in
    seconds, at which the call must have ended; `None` leaves the configured longest time. `origin` says for which
    workspace, run and question the call is made: it goes into the `llm_calls` row alone. Every call either
    returns a complete answer or raises one `InferenceError`; a cancelled call ends its upstream request.
    Safe to call from any number of tasks of one loop.
    """

    async def chat(
        self,
        request: ChatRequest,
        *,
        salt: str | None = None,
        cache_mode: CacheMode = CacheMode.USE,
        deadline: float | None = None,
        origin: CallOrigin = NO_ORIGIN,
    ) -> ChatResult:
        """The model's whole answer. Raises an `InferenceError`, never a partial answer."""
        ...

    async def embed(
        self,
        request: EmbedRequest,
        *,
        salt: str | None = None,
        cache_mode: CacheMode = CacheMode.USE,
        deadline: float | None = None,
        origin: CallOrigin = NO_ORIGIN,
    ) -> EmbedResult:
        """One vector a text. Raises an `InferenceError`; `RoleNotConfigured` where no `embed` endpoint is set."""
        ...

    def serves(self, role: Role) -> bool:
        """Whether any endpoint is configured for the role."""
        ...


class UpstreamResponse(Protocol):
    """The head of an upstream's response, and its body as it comes."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def content_type(self) -> str:
        """The media type in lower case, without parameters; empty when the upstream named none."""
        ...

    @property
    def retry_after(self) -> str | None:
        """The `Retry-After` header as it came."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """The body's bytes as they arrive. Raises `AttemptFault` when the transport fails."""
        ...


class Upstream(Protocol):
    """Sends one POST to an endpoint; no retries, no timeouts but that for connecting.

    Leaving the context in any way (an error, a cancellation) closes the response; a connection whose body was not
    read to its end is closed, not reused.
    """

    def post(self, endpoint: Endpoint, path: str, payload: bytes) -> AbstractAsyncContextManager[UpstreamResponse]:
        """The response to `payload`, a JSON text, at `{base_url}{path}`. Raises `AttemptFault` when there is none."""
        ...


class CacheFault(Exception):
    """The technology behind a response cache failed."""


@dataclass(frozen=True, slots=True)
class CacheSize:
    """How much a response cache holds; `size_bytes` is `None` where it can't tell."""

    entry_count: int
    size_bytes: int | None


class ResponseCache(Protocol):
    """Bytes by key, each entry with a life of its own. Every method raises `CacheFault`, and nothing else."""

    @property
    def backend(self) -> str:
        """`redis` or `disk`."""
        ...

    @property
    def patience_seconds(self) -> float:
        """How long a call may wait for its `get`s together, and again for its `set`."""
        ...

    async def get(self, key: str) -> bytes | None:
        """The bytes kept under `key`, or `None`."""
        ...

    async def set(self, key: str, value: bytes, ttl_seconds: int) -> None:
        """Keep `value` under `key` for `ttl_seconds`, replacing what was there."""
        ...

    async def size(self) -> CacheSize:
        """How much it holds."""
        ...

    async def extend(self, ttl_seconds: int) -> tuple[int, int]:
        """Give every entry with less than `ttl_seconds` left that much; returns (renewed, seen)."""
        ...

    async def purge(self, key_prefix: str) -> int:
        """Remove the entries whose key begins with `key_prefix`; returns how many."""
        ...

    async def close(self) -> None:
        """Let go of connections and files."""
        ...


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One logical call: an `llm_calls` row. `endpoint` is empty when none was reached."""

    call_id: str
    role: Role
    origin: CallOrigin
    started: datetime
    outcome: Outcome
    cache_status: CacheStatus
    endpoint: str
    attempts: int
    usage: Usage | None
    timing: Timing


class CallObserver(Protocol):
    """Hears of what happened; never raises, never waits."""

    def call_ended(self, record: CallRecord) -> None:
        """A logical call ended, in whatever way."""
        ...

    def attempt_ended(self, endpoint: str, outcome: Outcome, seconds: float) -> None:
        """An attempt at an upstream ended."""
        ...

    def cache_used(self, event: str) -> None:
        """A look at the response cache: `hit`, `miss`, `stored`, `fault` or `skipped` (its breaker is open)."""
        ...
