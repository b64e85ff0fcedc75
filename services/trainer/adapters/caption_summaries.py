"""Summaries of captions by the `tool` role over the inference service's gRPC (`--summarise`)."""

import asyncio
from collections.abc import Sequence

import grpc
from videotree.inference.v1 import chat_pb2, model_service_pb2, model_service_pb2_grpc

from services.templates import Template
from services.trainer.adapters.calls import Caller

_CALLS_AT_ONCE = 16
_TIMEOUT_SECONDS = 600.0


class CaptionSummaries:
    """The `Summariser` port; `template` is `tools.summarise`. Unsalted, so that a repeated import costs nothing."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller, template: Template) -> None:
        self._stub = model_service_pb2_grpc.ModelServiceStub(channel)
        self._caller = caller
        self._template = template
        self._slots = asyncio.Semaphore(_CALLS_AT_ONCE)

    async def summary(self, time: str, descriptions: Sequence[str], most_chars: int) -> str:
        """See Summariser."""
        prompt = self._template.render(
            time=time, descriptions="\n".join(f"- {text}" for text in descriptions), max_chars=str(most_chars)
        )
        message = chat_pb2.Message(role="user", parts=[chat_pb2.ContentPart(text=prompt)])
        call = chat_pb2.ChatCall(role=chat_pb2.ROLE_TOOL, messages=[message])
        async with self._slots:
            response = await self._caller.unary(
                self._stub.Chat, model_service_pb2.ChatRequest(call=call), _TIMEOUT_SECONDS
            )
        return response.result.content
