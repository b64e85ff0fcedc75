"""Endpoints, breakers and the response cache over the inference service's gRPC."""

from __future__ import annotations

import grpc
from google.protobuf.duration_pb2 import Duration
from videotree.inference.v1 import chat_pb2, model_service_pb2_grpc
from videotree.inference.v1 import model_service_pb2 as pb

from services.trainer.adapters.calls import Caller
from services.trainer.adapters.messages import from_message
from services.trainer.domain.endpoints import CacheStats, Endpoint

_PROBE_TIMEOUT_SECONDS = 30.0


class ModelsClient:
    """The `Models` port."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub, self._caller = model_service_pb2_grpc.ModelServiceStub(channel), caller

    async def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints by name."""
        answer = await self._caller.unary(self._stub.ListEndpoints, pb.ListEndpointsRequest())
        return tuple(from_message(each, Endpoint) for each in answer.endpoints)

    async def reset_breaker(self, endpoint: str) -> Endpoint:
        """Closes an endpoint's breaker and forgets its failures."""
        answer = await self._caller.unary(self._stub.ResetBreaker, pb.ResetBreakerRequest(endpoint=endpoint))
        return from_message(answer.endpoint, Endpoint)

    async def open_breaker(self, endpoint: str) -> Endpoint:
        """Opens an endpoint's breaker for its configured cooldown."""
        answer = await self._caller.unary(self._stub.ForceOpenBreaker, pb.ForceOpenBreakerRequest(endpoint=endpoint))
        return from_message(answer.endpoint, Endpoint)

    async def probe(self, role: str) -> None:
        """Makes a real call of one token for a role, past the cache. Raises ServiceFailed."""
        if role == "embed":
            request = pb.EmbedRequest(texts=["ping"], cache_mode=chat_pb2.CACHE_MODE_BYPASS)
            await self._caller.unary(self._stub.Embed, request, _PROBE_TIMEOUT_SECONDS)
            return
        call = chat_pb2.ChatCall(
            role=chat_pb2.Role.Value(f"ROLE_{role.upper()}"),
            messages=[chat_pb2.Message(role="user", parts=[chat_pb2.ContentPart(text="Are you ready?")])],
            parameters_json='{"max_tokens": 1}',
            cache_mode=chat_pb2.CACHE_MODE_BYPASS,
        )
        await self._caller.unary(self._stub.Chat, pb.ChatRequest(call=call), _PROBE_TIMEOUT_SECONDS)

    async def cache_stats(self) -> CacheStats:
        """Figures about the response cache."""
        answer = await self._caller.unary(self._stub.GetCacheStats, pb.GetCacheStatsRequest())
        return from_message(answer, CacheStats)

    async def extend_cache(self, ttl_seconds: int) -> tuple[int, int]:
        """Renews every entry whose remaining life is shorter; returns entries renewed and entries seen."""
        request = pb.ExtendCacheRequest(ttl_duration=Duration(seconds=ttl_seconds))
        answer = await self._caller.unary(self._stub.ExtendCache, request, _PROBE_TIMEOUT_SECONDS)
        return answer.extended_count, answer.entry_count

    async def purge_cache(self, salt: str | None) -> int:
        """Removes the entries of one salt, or those without one; returns how many."""
        answer = await self._caller.unary(
            self._stub.PurgeCache, pb.PurgeCacheRequest(salt=salt), _PROBE_TIMEOUT_SECONDS
        )
        return answer.purged_count
