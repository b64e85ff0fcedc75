"""What the governed model needs from outside, and the port by which the agent calls it."""

from __future__ import annotations

from typing import Protocol

from services.inference.domain.chat import (
    CacheMode,
    CallOrigin,
    ChatRequest,
    ChatResult,
    EmbedRequest,
    EmbedResult,
    Role,
)


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
