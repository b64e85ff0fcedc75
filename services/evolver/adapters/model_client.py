"""The governed model over gRPC."""

import asyncio
from collections.abc import Sequence

import grpc
from videotree.inference.v1 import chat_pb2, model_service_pb2, model_service_pb2_grpc

from services.evolver.adapters.failures import model_failure
from services.evolver.use_cases.ports import ChatMessage, ModelRole, Origin, Reply

_ROLES = {ModelRole.JUDGE: chat_pb2.ROLE_JUDGE, ModelRole.EVOLVE: chat_pb2.ROLE_EVOLVE}
_WAIT_SECONDS = 0.5


class GrpcModel:
    """Model over inference's ModelService; `timeout_seconds` bounds one call with its retries.

    While inference or its endpoints are away (UNAVAILABLE), calls are made again for `retry_seconds`: all together from
    the first that failed, so that a long outage is waited for once, and none for longer from its own first failure.
    """

    def __init__(self, channel: grpc.aio.Channel, timeout_seconds: float, retry_seconds: float) -> None:
        self._stub = model_service_pb2_grpc.ModelServiceStub(channel)
        self._timeout_seconds = timeout_seconds
        self._retry_seconds = retry_seconds
        self._outage_began: float | None = None

    async def chat(self, role: ModelRole, messages: Sequence[ChatMessage], origin: Origin) -> Reply:
        """See Model. No salt is sent, so an equal question is answered from the cache."""
        call = chat_pb2.ChatCall(
            role=_ROLES[role],
            messages=[
                chat_pb2.Message(role=message.role, parts=[chat_pb2.ContentPart(text=message.text)])
                for message in messages
            ],
            workspace=origin.workspace,
            run_id=origin.run_id,
        )
        result = await self._answered(model_service_pb2.ChatRequest(call=call))
        return Reply(result.content, result.finish_reason)

    async def _answered(self, request: model_service_pb2.ChatRequest) -> chat_pb2.ChatResult:
        clock = asyncio.get_running_loop().time
        own_outage: float | None = None
        while True:
            try:
                response = await self._stub.Chat(request, timeout=self._timeout_seconds)
            except grpc.aio.AioRpcError as error:
                now = clock()
                own_outage = now if own_outage is None else own_outage
                self._outage_began = now if self._outage_began is None else self._outage_began
                away = error.code() is grpc.StatusCode.UNAVAILABLE
                if not away or now + _WAIT_SECONDS > min(own_outage, self._outage_began) + self._retry_seconds:
                    raise model_failure(error) from error
                await asyncio.sleep(_WAIT_SECONDS)
            else:
                self._outage_began = None
                return response.result
