"""What a governed call is built on and nothing more: grpc.aio in front, aiohttp behind, the answer's text between.

    python -m bench.inference_bare PORT UPSTREAM_PORT

No cache, breaker, retries, slots, clocks, record, metrics or checks: the bound that the governed call is held against.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import aiohttp
import grpc
import orjson
import uvloop
from videotree.inference.v1 import chat_pb2, model_service_pb2, model_service_pb2_grpc

from services.runtime.transport import server_options

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class BareModel(model_service_pb2_grpc.ModelServiceServicer):
    """Unary chats only."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def Chat(  # noqa: N802 -- proto name
        self, request: model_service_pb2.ChatRequest, context: Context
    ) -> model_service_pb2.ChatResponse:
        """The text of a streamed answer."""
        messages = [{"role": each.role, "content": each.parts[0].text} for each in request.call.messages]
        body = orjson.dumps({"model": "m", "messages": messages, "temperature": 0, "stream": True})
        async with self._session.post(self._url, data=body) as response:
            answer = await response.read()
        return model_service_pb2.ChatResponse(result=chat_pb2.ChatResult(content="".join(_texts(answer))))


def _texts(answer: bytes) -> list[str]:
    events = [line[6:] for line in answer.split(b"\n") if line.startswith(b"data: {")]
    choices = [choice for event in events for choice in orjson.loads(event)["choices"]]
    return [choice["delta"].get("content") or "" for choice in choices]


async def _serve(port: int, upstream: int) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers={"content-type": "application/json"}) as session:
        server = grpc.aio.server(options=server_options(64))
        model = BareModel(f"http://127.0.0.1:{upstream}/v1/chat/completions", session)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(model, server)
        server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        await server.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
