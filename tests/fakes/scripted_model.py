"""A governed model whose replies a test writes."""

import asyncio
import json
from collections.abc import Callable, Sequence

from services.inference.domain.chat import (
    CacheMode,
    CacheStatus,
    CallOrigin,
    ChatRequest,
    ChatResult,
    Completion,
    Embeddings,
    EmbedRequest,
    EmbedResult,
    Role,
    Timing,
    Usage,
)

Reply = str | Exception | Completion


def acts(tool: str, /, **args: object) -> str:
    """A well formed reply of the agent."""
    return json.dumps({"reflect": "r", "plan": "p", "action": {"tool": tool, "args": args}})


class ScriptedModel:
    """Gives the agent role its replies in order (the last one again and again), other roles by function."""

    def __init__(
        self,
        agent: Sequence[Reply] | Callable[[ChatRequest], Reply] = (),
        *,
        others: Callable[[ChatRequest], Reply] | None = None,
        roles: frozenset[Role] = frozenset({Role.AGENT, Role.TOOL, Role.VISION}),
        seconds: float = 0.0,
    ) -> None:
        self._agent = agent
        self._others = others
        self._roles = roles
        self._seconds = seconds
        self.requests: list[ChatRequest] = []
        self.salts: list[str | None] = []
        self.embedded: list[tuple[str, ...]] = []
        self.embed_origins: list[CallOrigin | None] = []
        self.in_flight = 0
        self.most_in_flight = 0

    async def chat(
        self,
        request: ChatRequest,
        *,
        salt: str | None = None,
        cache_mode: CacheMode = CacheMode.USE,
        deadline: float | None = None,
        origin: CallOrigin | None = None,
    ) -> ChatResult:
        """See ChatModel."""
        self.requests.append(request)
        self.salts.append(salt)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self._seconds)
            return _result(self._reply(request))
        finally:
            self.in_flight -= 1

    async def embed(
        self,
        request: EmbedRequest,
        *,
        salt: str | None = None,
        cache_mode: CacheMode = CacheMode.USE,
        deadline: float | None = None,
        origin: CallOrigin | None = None,
    ) -> EmbedResult:
        """Letter counts as vectors."""
        self.embedded.append(request.texts)
        self.embed_origins.append(origin)
        vectors = tuple(
            tuple(float(text.lower().count(letter)) for letter in "abcdeghknorstw") for text in request.texts
        )
        return EmbedResult(Embeddings(vectors, None, "m"), "c", "e", CacheStatus.MISS, 1, Timing(0.0))

    def serves(self, role: Role) -> bool:
        """See ChatModel."""
        return role in self._roles

    def _reply(self, request: ChatRequest) -> Reply:
        if request.role is not Role.AGENT:
            return self._others(request) if self._others else "condensed"
        if callable(self._agent):
            return self._agent(request)
        turn = sum(message.role == "assistant" for message in request.messages)
        return self._agent[min(turn, len(self._agent) - 1)]


def completion(text: str, finish_reason: str = "stop") -> Completion:
    """A whole answer."""
    return Completion(text, "", (), finish_reason, Usage(10, 2, 12), "m")


def _result(reply: Reply) -> ChatResult:
    if isinstance(reply, Exception):
        raise reply
    answer = completion(reply) if isinstance(reply, str) else reply
    return ChatResult(answer, "call", "endpoint", CacheStatus.MISS, 1, Timing(0.0))
