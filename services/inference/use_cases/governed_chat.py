"""The governed model: record -> cache -> single flight -> slot -> breaker -> attempt (INF-2 to INF-11)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial

from services.inference.domain.cache_key import cache_key
from services.inference.domain.chat import (
    CacheMode,
    CallOrigin,
    ChatRequest,
    ChatResult,
    Completion,
    Delta,
    Embeddings,
    EmbedRequest,
    EmbedResult,
    Role,
    Timing,
    ToolCallPiece,
)
from services.inference.domain.endpoint import Endpoint
from services.inference.domain.errors import RoleNotConfigured, StreamInterrupted
from services.inference.domain.stored_answer import decode_completion, decode_embeddings
from services.inference.domain.upstream_body import chat_body, check_size, content_bytes, embed_body, encode_json
from services.inference.use_cases.attempt import attempt_chat, attempt_embed
from services.inference.use_cases.call_endpoints import Candidate
from services.inference.use_cases.call_record import RecordedCall
from services.inference.use_cases.guarded_endpoint import GuardedEndpoint
from services.inference.use_cases.ports import NO_ORIGIN, CallObserver, Upstream
from services.inference.use_cases.shared_calls import Answer, CallKind, SharedCalls

# Above this, encoding and hashing take milliseconds: they go to a thread, so that other calls don't wait for them.
_LARGE_BYTES = 256 * 1024


class GovernedModel:
    """Implements `ChatModel` over the configured endpoints, and streams. Belongs to one event loop."""

    def __init__(
        self,
        endpoints: Mapping[Role, Sequence[GuardedEndpoint]],
        upstream: Upstream,
        calls: SharedCalls,
        observer: CallObserver,
        *,
        seed_from_salt: bool,
        max_request_bytes: int,
        max_call_seconds: float,
    ) -> None:
        self._endpoints = endpoints
        self._upstream = upstream
        self._calls = calls
        self._observer = observer
        self._seed_from_salt = seed_from_salt
        self._max_request_bytes = max_request_bytes
        self._max_call_seconds = max_call_seconds
        self._chat_kind: CallKind[Completion] = CallKind(
            partial(attempt_chat, upstream), decode_completion, _may_be_kept
        )

    def serves(self, role: Role) -> bool:
        """Whether any endpoint is configured for the role."""
        return bool(self._endpoints.get(role))

    async def chat(
        self,
        request: ChatRequest,
        *,
        salt: str | None = None,
        cache_mode: CacheMode = CacheMode.USE,
        deadline: float | None = None,
        origin: CallOrigin = NO_ORIGIN,
    ) -> ChatResult:
        """The model's whole answer; see `ChatModel`."""
        with RecordedCall(request.role, origin, cache_mode, self._observer) as call:
            candidates = await self._chat_candidates(request, salt)
            answer = await self._whole_answer(call, candidates, cache_mode, self._deadline(deadline))
            call.answered(answer)
        return _chat_result(call, answer)

    async def stream_chat(
        self,
        request: ChatRequest,
        *,
        salt: str | None = None,
        cache_mode: CacheMode = CacheMode.USE,
        deadline: float | None = None,
        origin: CallOrigin = NO_ORIGIN,
    ) -> AsyncGenerator[Delta | ChatResult, None]:
        """The deltas as they come, then the whole answer; a cache hit is one delta.

        Raises as `chat` does, and `StreamInterrupted` when the upstream fails after a delta. Close it (`aclosing`)
        to cancel the call.
        """
        until = self._deadline(deadline)
        with RecordedCall(request.role, origin, cache_mode, self._observer) as call:
            candidates = await self._chat_candidates(request, salt)
            flight, joined = self._calls.join(self._chat_kind, candidates, cache_mode)
            call.boarded(flight, joined=joined)
            streamed = False
            async with aclosing(flight.stream(until)) as deltas:
                async for delta in deltas:
                    streamed = True
                    yield delta
            answer = await flight.result(until)
            if not streamed and (whole := _as_delta(answer.value)) is not None:
                yield whole
            call.answered(answer)
        yield _chat_result(call, answer)

    async def embed(
        self,
        request: EmbedRequest,
        *,
        salt: str | None = None,
        cache_mode: CacheMode = CacheMode.USE,
        deadline: float | None = None,
        origin: CallOrigin = NO_ORIGIN,
    ) -> EmbedResult:
        """One vector a text; see `ChatModel`."""
        with RecordedCall(Role.EMBED, origin, cache_mode, self._observer) as call:
            flight, joined = self._calls.join(
                self._embed_kind(request), self._embed_candidates(request, salt), cache_mode
            )
            call.boarded(flight, joined=joined)
            answer = await flight.result(self._deadline(deadline))
            call.answered(answer)
        return EmbedResult(answer.value, call.call_id, answer.endpoint, call.cache_status, call.attempts, call.timing)

    async def _whole_answer(
        self, call: RecordedCall, candidates: Sequence[Candidate], mode: CacheMode, until: float
    ) -> Answer[Completion]:
        while True:
            flight, joined = self._calls.join(self._chat_kind, candidates, mode)
            call.boarded(flight, joined=joined)
            # What interrupted a streaming caller of the same flight may be tried again for one who was given nothing.
            with suppress(StreamInterrupted):
                return await flight.result(until)

    async def _chat_candidates(self, request: ChatRequest, salt: str | None) -> list[Candidate]:
        size = content_bytes(request)
        check_size(size, self._max_request_bytes)

        def prepare(endpoint: Endpoint) -> tuple[bytes, str]:
            body = chat_body(request, endpoint, salt=salt, seed_from_salt=self._seed_from_salt)
            return encode_json(body), cache_key(kind="chat", model=endpoint.model, body=body, salt=salt)

        candidates = self._candidates(request.role, prepare)
        if size > _LARGE_BYTES:
            await asyncio.to_thread(candidates[0].prepared)
        return candidates

    def _embed_candidates(self, request: EmbedRequest, salt: str | None) -> list[Candidate]:
        def prepare(endpoint: Endpoint) -> tuple[bytes, str]:
            body = embed_body(request, endpoint)
            return encode_json(body), cache_key(kind="embed", model=endpoint.model, body=body, salt=salt)

        return self._candidates(Role.EMBED, prepare)

    def _candidates(self, role: Role, prepare: Callable[[Endpoint], tuple[bytes, str]]) -> list[Candidate]:
        endpoints = self._endpoints.get(role)
        if not endpoints:
            raise RoleNotConfigured(f"no endpoint serves the role {role}; set LLM_BASE_URL and {_model_variable(role)}")
        return [Candidate(guarded, prepare) for guarded in endpoints]

    def _embed_kind(self, request: EmbedRequest) -> CallKind[Embeddings]:
        async def attempt(
            endpoint: Endpoint, payload: bytes, _on_delta: Callable[[Delta], None]
        ) -> tuple[Embeddings, Timing]:
            return await attempt_embed(self._upstream, endpoint, payload, len(request.texts))

        return CallKind(attempt, decode_embeddings, lambda _: True)

    def _deadline(self, deadline: float | None) -> float:
        longest = asyncio.get_running_loop().time() + self._max_call_seconds
        return longest if deadline is None else min(deadline, longest)


def _may_be_kept(completion: Completion) -> bool:
    return completion.finish_reason != "length"


def _chat_result(call: RecordedCall, answer: Answer[Completion]) -> ChatResult:
    return ChatResult(answer.value, call.call_id, answer.endpoint, call.cache_status, call.attempts, call.timing)


def _as_delta(completion: Completion) -> Delta | None:
    """The whole answer as one delta, for a stream that is served from the cache; `None` when it is empty."""
    pieces = tuple(
        ToolCallPiece(index, tool_call.call_id, tool_call.name, tool_call.arguments)
        for index, tool_call in enumerate(completion.tool_calls)
    )
    if not (completion.content or completion.reasoning or pieces):
        return None
    return Delta(completion.content, completion.reasoning, pieces)


def _model_variable(role: Role) -> str:
    """What must be set to serve the role: a chat model serves every role but `embed`."""
    return "EMBED_LLM_MODEL" if role is Role.EMBED else "LLM_MODEL"
