"""The governed model over gRPC."""

from collections.abc import Sequence

import grpc
from videotree.inference.v1 import chat_pb2, model_service_pb2, model_service_pb2_grpc

from services.evolver.adapters.failures import model_failure
from services.evolver.use_cases.ports import ChatMessage, ModelRole, Origin, Reply

_ROLES = {ModelRole.JUDGE: chat_pb2.ROLE_JUDGE, ModelRole.EVOLVE: chat_pb2.ROLE_EVOLVE}


class GrpcModel:
    """Model over inference's ModelService; `timeout_seconds` bounds one call with its retries."""

    def __init__(self, channel: grpc.aio.Channel, timeout_seconds: float) -> None:
        self._stub = model_service_pb2_grpc.ModelServiceStub(channel)
        self._timeout_seconds = timeout_seconds

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
        request = model_service_pb2.ChatRequest(call=call)
        try:
            response = await self._stub.Chat(request, timeout=self._timeout_seconds)
        except grpc.aio.AioRpcError as error:
            raise model_failure(error) from error
        return Reply(response.result.content, response.result.finish_reason)
