"""Asking a model for a JSON answer, with one retry that shows what was wrong (EVO-2)."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from services.evolver.domain.answers import read_object
from services.evolver.domain.errors import AnswerFault
from services.evolver.use_cases.ports import ChatMessage, Model, ModelRole, Origin, Reply
from services.templates import Template, TemplateSet

_T = TypeVar("_T")
RETRY_TEMPLATE = "evolve.retry"
_ATTEMPTS = 2
_SHOWN_FAULTS = 10


@dataclass(frozen=True, slots=True)
class Answer(Generic[_T]):
    """What was read out of an answer, or None with the faults of the last attempt."""

    value: _T | None
    faults: tuple[str, ...]
    attempts: int


class AskModel:
    """Renders a template, asks, and reads the answer; at most `concurrency` calls are in flight at once."""

    def __init__(self, model: Model, templates: TemplateSet, concurrency: int) -> None:
        self._model = model
        self._templates = templates
        self._slots = asyncio.Semaphore(concurrency)

    async def ask(
        self,
        template_name: str,
        values: Mapping[str, str],
        role: ModelRole,
        origin: Origin,
        read: Callable[[Mapping[str, Any]], _T],
    ) -> Answer[_T]:
        """Return what `read` makes of the answer, after one retry at most; `read` raises AnswerFault for a bad one.

        Raises ModelUnavailable when the model can't be asked; that is never an answer.
        """
        template = self._templates[template_name]
        messages = [ChatMessage("user", template.render(**values))]
        faults: tuple[str, ...] = ()
        for attempt in range(1, _ATTEMPTS + 1):
            async with self._slots:
                reply = await self._model.chat(role, messages, origin)
            try:
                return Answer(read(_checked(template, reply)), (), attempt)
            except AnswerFault as fault:
                faults = fault.faults
                messages += [ChatMessage("assistant", reply.text or "(empty)"), self._retry(faults)]
        return Answer(None, faults, _ATTEMPTS)

    def _retry(self, faults: tuple[str, ...]) -> ChatMessage:
        shown = "\n".join(f"- {fault}" for fault in faults[:_SHOWN_FAULTS])
        return ChatMessage("user", self._templates[RETRY_TEMPLATE].render(faults=shown))


def _checked(template: Template, reply: Reply) -> Mapping[str, Any]:
    value = read_object(reply.text, reply.finish_reason)
    faults = template.answer_faults(value)
    if faults:
        raise AnswerFault(faults)
    return value
