"""The governed model as one question uses it: with the call's salt and deadline, and counting what is spent."""

import asyncio
from dataclasses import replace

from services.inference.domain.chat import (
    CacheStatus,
    CallOrigin,
    ChatRequest,
    ChatResult,
    JsonObject,
    Message,
    Role,
)
from services.inference.domain.errors import EndpointsUnavailable, InferenceError, UpstreamTransient
from services.inference.domain.prediction import Spent
from services.inference.use_cases.patience import Patience
from services.inference.use_cases.ports import NO_ORIGIN, ChatModel

_BROKEN_CONNECTIONS = 2
"""So often a call whose connections all failed is made again: by then the breaker tells an outage from one bad call."""


class MeteredModel:
    """Calls of one question. `deadline` is loop time in seconds; without `patience` no outage is waited out."""

    def __init__(
        self,
        model: ChatModel,
        salt: str | None,
        deadline: float | None,
        origin: CallOrigin = NO_ORIGIN,
        patience: Patience | None = None,
    ) -> None:
        self._model = model
        self._salt = salt
        self._deadline = deadline
        self._origin = origin
        self._patience = patience
        self.spent = Spent()

    async def ask(
        self, role: Role, messages: tuple[Message, ...], response_format: JsonObject | None = None
    ) -> ChatResult:
        """The answer to a conversation, waited for while endpoints are away and patience lasts.

        Raises an InferenceError; a failed call counts as a call.
        """
        self.spent = replace(self.spent, model_calls=self.spent.model_calls + 1)
        request = ChatRequest(role, messages, response_format=response_format)
        broken = 0
        while True:
            try:
                result = await self._model.chat(request, salt=self._salt, deadline=self._deadline, origin=self._origin)
            except EndpointsUnavailable as refusal:
                await self._wait_or_give_up(refusal, refusal.wait_seconds)
            except UpstreamTransient as fault:
                broken += 1
                if fault.code is not None or broken > _BROKEN_CONNECTIONS:
                    raise
                await self._wait_or_give_up(fault, 0.0)
            else:
                self._count(result)
                return result

    @property
    def origin(self) -> CallOrigin:
        """What the calls are made for."""
        return self._origin

    def serves(self, role: Role) -> bool:
        """Whether an endpoint is configured for the role."""
        return self._model.serves(role)

    async def _wait_or_give_up(self, failure: InferenceError, wait_seconds: float) -> None:
        wait = None if self._patience is None else self._patience.wait_after(wait_seconds, self._deadline)
        if wait is None:
            raise failure
        await asyncio.sleep(wait)

    def _count(self, result: ChatResult) -> None:
        if self._patience is not None and result.cache_status is not CacheStatus.HIT:
            self._patience.answered()
        usage = result.usage
        self.spent = replace(
            self.spent,
            cache_hits=self.spent.cache_hits + (result.cache_status is CacheStatus.HIT),
            prompt_tokens=self.spent.prompt_tokens + (usage.prompt_tokens if usage else 0),
            completion_tokens=self.spent.completion_tokens + (usage.completion_tokens if usage else 0),
        )
