"""ModelService."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, TypeAlias

import grpc
from videotree.inference.v1 import model_service_pb2 as pb
from videotree.inference.v1 import model_service_pb2_grpc

from services.inference.domain.chat import EmbedRequest
from services.inference.rpc import model_translate as translate
from services.inference.use_cases.governed_chat import GovernedModel
from services.inference.use_cases.operate import Operations
from services.runtime.request_context import remaining_seconds

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class ModelServicer(model_service_pb2_grpc.ModelServiceServicer):
    """The governed model over gRPC; each method is described in the proto."""

    def __init__(self, model: GovernedModel, operations: Operations) -> None:
        self._model = model
        self._operations = operations

    async def Chat(self, request: pb.ChatRequest, context: Context) -> pb.ChatResponse:  # noqa: N802 -- proto name
        """See the proto."""
        result = await self._model.chat(
            translate.chat_request(request.call), **translate.governance(request.call), deadline=_deadline(context)
        )
        return pb.ChatResponse(result=translate.chat_result(result))

    async def StreamChat(  # noqa: N802 -- proto name
        self, request: pb.StreamChatRequest, context: Context
    ) -> AsyncIterator[pb.StreamChatResponse]:
        """See the proto."""
        stream = self._model.stream_chat(
            translate.chat_request(request.call), **translate.governance(request.call), deadline=_deadline(context)
        )
        async with aclosing(stream) as events:
            async for event in events:
                for response in translate.stream_responses(event):
                    yield response

    async def Embed(self, request: pb.EmbedRequest, context: Context) -> pb.EmbedResponse:  # noqa: N802 -- proto name
        """See the proto."""
        wanted = EmbedRequest(tuple(request.texts))
        result = await self._model.embed(wanted, **translate.governance(request), deadline=_deadline(context))
        return translate.embed_response(result)

    async def ListEndpoints(  # noqa: N802 -- proto name
        self, request: pb.ListEndpointsRequest, context: Context
    ) -> pb.ListEndpointsResponse:
        """See the proto."""
        statuses = self._operations.list_endpoints()
        return pb.ListEndpointsResponse(endpoints=map(translate.endpoint_message, statuses))

    async def ForceOpenBreaker(  # noqa: N802 -- proto name
        self, request: pb.ForceOpenBreakerRequest, context: Context
    ) -> pb.ForceOpenBreakerResponse:
        """See the proto."""
        seconds = translate.seconds_of(request.open_duration) if request.HasField("open_duration") else None
        status = self._operations.force_open(request.endpoint, seconds)
        return pb.ForceOpenBreakerResponse(endpoint=translate.endpoint_message(status))

    async def ResetBreaker(  # noqa: N802 -- proto name
        self, request: pb.ResetBreakerRequest, context: Context
    ) -> pb.ResetBreakerResponse:
        """See the proto."""
        status = self._operations.reset(request.endpoint)
        return pb.ResetBreakerResponse(endpoint=translate.endpoint_message(status))

    async def GetCacheStats(  # noqa: N802 -- proto name
        self, request: pb.GetCacheStatsRequest, context: Context
    ) -> pb.GetCacheStatsResponse:
        """See the proto."""
        return translate.cache_stats_response(await self._operations.cache_stats())

    async def ExtendCache(  # noqa: N802 -- proto name
        self, request: pb.ExtendCacheRequest, context: Context
    ) -> pb.ExtendCacheResponse:
        """See the proto."""
        extended, seen = await self._operations.extend_cache(translate.seconds_of(request.ttl_duration))
        return pb.ExtendCacheResponse(extended_count=extended, entry_count=seen)

    async def PurgeCache(  # noqa: N802 -- proto name
        self, request: pb.PurgeCacheRequest, context: Context
    ) -> pb.PurgeCacheResponse:
        """See the proto."""
        purged = await self._operations.purge_cache(request.salt if request.HasField("salt") else None)
        return pb.PurgeCacheResponse(purged_count=purged)


def _deadline(context: Context) -> float | None:
    """The call's deadline in loop time."""
    seconds = remaining_seconds(context)
    return None if seconds is None else asyncio.get_running_loop().time() + seconds
