"""The governed model as one question uses it: with the call's salt and deadline, and counting what is spent."""

from dataclasses import replace

from services.inference.domain.chat import (
    CacheStatus,
    CallOrigin,
    ChatRequest,
    ChatResult,
    Message,
    Role,
)
from services.inference.domain.prediction import Spent
from services.inference.use_cases.ports import NO_ORIGIN, ChatModel


class MeteredModel:
    """Calls of one question. `deadline` is loop time in seconds."""

    def __init__(
        self, model: ChatModel, salt: str | None, deadline: float | None, origin: CallOrigin = NO_ORIGIN
    ) -> None:
        self._model = model
        self._salt = salt
        self._deadline = deadline
        self._origin = origin
        self.spent = Spent()

    async def ask(self, role: Role, messages: tuple[Message, ...]) -> ChatResult:
        """The answer to a conversation. Raises an InferenceError; a failed call counts as a call."""
        self.spent = replace(self.spent, model_calls=self.spent.model_calls + 1)
        result = await self._model.chat(
            ChatRequest(role, messages), salt=self._salt, deadline=self._deadline, origin=self._origin
        )
        self._count(result)
        return result

    def serves(self, role: Role) -> bool:
        """Whether an endpoint is configured for the role."""
        return self._model.serves(role)

    def _count(self, result: ChatResult) -> None:
        usage = result.usage
        self.spent = replace(
            self.spent,
            cache_hits=self.spent.cache_hits + (result.cache_status is CacheStatus.HIT),
            prompt_tokens=self.spent.prompt_tokens + (usage.prompt_tokens if usage else 0),
            completion_tokens=self.spent.completion_tokens + (usage.completion_tokens if usage else 0),
        )
