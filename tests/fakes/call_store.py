"""A store that keeps the `llm_calls` rows it is sent."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc
from videotree.store.v1 import llm_call_pb2, run_service_pb2, run_service_pb2_grpc


@dataclass
class CallStore(run_service_pb2_grpc.RunServiceServicer):
    """`rows` by workspace; refuses the workspace `unknown`, and everything while `away`."""

    rows: dict[str, list[llm_call_pb2.LlmCall]] = field(default_factory=dict)
    requests: int = 0
    away: bool = False
    port: int = 0

    async def AppendLlmCalls(self, request: run_service_pb2.AppendLlmCallsRequest, context: Any) -> Any:  # noqa: N802
        """Keep the rows."""
        self.requests += 1
        if self.away:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "away")
        if request.workspace == "unknown":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such workspace")
        self.rows.setdefault(request.workspace, []).extend(request.calls)
        return run_service_pb2.AppendLlmCallsResponse(call_count=len(request.calls))


@contextlib.asynccontextmanager
async def call_store() -> AsyncIterator[CallStore]:
    """A listening store."""
    store = CallStore()
    server = grpc.aio.server()
    run_service_pb2_grpc.add_RunServiceServicer_to_server(store, server)
    store.port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield store
    finally:
        await server.stop(0)
