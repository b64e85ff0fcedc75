"""Protos of ModelService to domain values and back."""

from __future__ import annotations

from typing import Any

import orjson
from google.protobuf.duration_pb2 import Duration
from videotree.inference.v1 import chat_pb2, endpoint_pb2, model_service_pb2

from services.inference.domain.breaker import BreakerState
from services.inference.domain.chat import (
    CacheMode,
    CacheStatus,
    CallOrigin,
    ChatRequest,
    ChatResult,
    Delta,
    EmbedResult,
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ToolCall,
    Usage,
)
from services.inference.domain.errors import InvalidRequest
from services.inference.use_cases.guarded_cache import CacheStats
from services.inference.use_cases.guarded_endpoint import EndpointStatus

_ROLES = {
    chat_pb2.ROLE_AGENT: Role.AGENT,
    chat_pb2.ROLE_TOOL: Role.TOOL,
    chat_pb2.ROLE_VISION: Role.VISION,
    chat_pb2.ROLE_JUDGE: Role.JUDGE,
    chat_pb2.ROLE_EVOLVE: Role.EVOLVE,
    chat_pb2.ROLE_EMBED: Role.EMBED,
}
_ROLE_NUMBERS = {role: number for number, role in _ROLES.items()}
_CACHE_MODES = {
    chat_pb2.CACHE_MODE_UNSPECIFIED: CacheMode.USE,
    chat_pb2.CACHE_MODE_USE: CacheMode.USE,
    chat_pb2.CACHE_MODE_REFRESH: CacheMode.REFRESH,
    chat_pb2.CACHE_MODE_BYPASS: CacheMode.BYPASS,
}
_CACHE_STATUSES = {
    CacheStatus.HIT: chat_pb2.CACHE_STATUS_HIT,
    CacheStatus.MISS: chat_pb2.CACHE_STATUS_MISS,
    CacheStatus.REFRESH: chat_pb2.CACHE_STATUS_REFRESH,
    CacheStatus.BYPASS: chat_pb2.CACHE_STATUS_BYPASS,
    CacheStatus.JOINED: chat_pb2.CACHE_STATUS_JOINED,
}
_BREAKER_STATES = {
    BreakerState.CLOSED: endpoint_pb2.BREAKER_STATE_CLOSED,
    BreakerState.OPEN: endpoint_pb2.BREAKER_STATE_OPEN,
    BreakerState.HALF_OPEN: endpoint_pb2.BREAKER_STATE_HALF_OPEN,
}


def chat_request(call: chat_pb2.ChatCall) -> ChatRequest:
    """The call's request. Raises `InvalidRequest` naming the field."""
    if call.role == chat_pb2.ROLE_EMBED:
        raise InvalidRequest("the role embed is for Embed", field="call.role")
    role = _ROLES.get(call.role)
    if role is None:
        raise InvalidRequest("the role is not set or unknown", field="call.role")
    return ChatRequest(
        role=role,
        messages=tuple(_message(message, f"call.messages[{i}]") for i, message in enumerate(call.messages)),
        parameters=_json_object(call.parameters_json, "call.parameters_json") or {},
        response_format=_json_object(call.response_format_json, "call.response_format_json"),
        tools=_json_objects(call.tools_json, "call.tools_json"),
    )


def governance(call: chat_pb2.ChatCall | model_service_pb2.EmbedRequest) -> dict[str, Any]:
    """Salt, cache mode and origin of a call, as keyword arguments. Raises `InvalidRequest`."""
    mode = _CACHE_MODES.get(call.cache_mode)
    if mode is None:
        raise InvalidRequest("the cache mode is unknown", field="cache_mode")
    return {
        "salt": call.salt if call.HasField("salt") else None,
        "cache_mode": mode,
        "origin": CallOrigin(call.workspace, call.run_id, call.parent_call),
    }


def chat_result(result: ChatResult) -> chat_pb2.ChatResult:
    """The whole answer as a proto."""
    timing = result.timing
    return chat_pb2.ChatResult(
        call_id=result.call_id,
        content=result.content,
        reasoning=result.reasoning,
        tool_calls=[
            chat_pb2.ToolCall(index=index, id=call.call_id, name=call.name, arguments=call.arguments)
            for index, call in enumerate(result.tool_calls)
        ],
        finish_reason=result.finish_reason or "",
        usage=usage_message(result.usage),
        cache_status=_CACHE_STATUSES[result.cache_status],
        endpoint=result.endpoint,
        attempts=result.attempts,
        model=result.completion.model,
        first_token_duration=_duration_or_none(timing.first_token_seconds),
        largest_gap_duration=_duration_or_none(timing.largest_gap_seconds),
    )


def stream_responses(event: Delta | ChatResult) -> list[model_service_pb2.StreamChatResponse]:
    """The messages that one event of a stream becomes."""
    if isinstance(event, ChatResult):
        return [model_service_pb2.StreamChatResponse(result=chat_result(event))]
    messages = []
    if event.reasoning:
        messages.append(model_service_pb2.StreamChatResponse(reasoning_delta=event.reasoning))
    if event.content:
        messages.append(model_service_pb2.StreamChatResponse(content_delta=event.content))
    for piece in event.tool_calls:
        call = chat_pb2.ToolCall(index=piece.index, id=piece.call_id, name=piece.name, arguments=piece.arguments)
        messages.append(model_service_pb2.StreamChatResponse(tool_call_delta=call))
    return messages


def embed_response(result: EmbedResult) -> model_service_pb2.EmbedResponse:
    """The vectors as a proto."""
    return model_service_pb2.EmbedResponse(
        embeddings=[model_service_pb2.Embedding(values=vector) for vector in result.vectors],
        cache_status=_CACHE_STATUSES[result.cache_status],
        usage=usage_message(result.embeddings.usage),
        call_id=result.call_id,
    )


def endpoint_message(status: EndpointStatus) -> endpoint_pb2.Endpoint:
    """An endpoint as operators see it."""
    return endpoint_pb2.Endpoint(
        name=status.endpoint.name,
        base_url=status.endpoint.base_url,
        model=status.endpoint.model,
        roles=[_ROLE_NUMBERS[role] for role in Role if role in status.endpoint.roles],
        breaker_state=_BREAKER_STATES[status.breaker_state],
        consecutive_failures=status.consecutive_failures,
        in_flight=status.in_flight,
        waiting=status.waiting,
        concurrency_limit=status.endpoint.concurrency_limit,
        attempt_count=status.attempt_count,
        failure_count=status.failure_count,
        last_error=status.last_error,
        retry_after_duration=_duration_or_none(status.wait_seconds),
    )


def cache_stats_response(stats: CacheStats) -> model_service_pb2.GetCacheStatsResponse:
    """The cache's figures as a proto."""
    return model_service_pb2.GetCacheStatsResponse(
        backend=stats.backend,
        entry_count=stats.entry_count,
        size_bytes=stats.size_bytes,
        hit_count=stats.hit_count,
        miss_count=stats.miss_count,
        error_count=stats.error_count,
        ttl_duration=_duration(stats.ttl_seconds),
    )


def usage_message(usage: Usage | None) -> chat_pb2.Usage | None:
    """The token counts as a proto, or `None`."""
    if usage is None:
        return None
    return chat_pb2.Usage(
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens, total_tokens=usage.total_tokens
    )


def seconds_of(duration: Duration) -> float:
    """The duration in seconds."""
    return duration.seconds + duration.nanos / 1e9


def _duration(seconds: float) -> Duration:
    # Five times as fast as Duration.FromTimedelta; an answer has several.
    whole, rest = divmod(seconds, 1)
    return Duration(seconds=int(whole), nanos=int(rest * 1e9))


def _duration_or_none(seconds: float | None) -> Duration | None:
    return None if seconds is None else _duration(seconds)


def _message(message: chat_pb2.Message, path: str) -> Message:
    parts = tuple(_part(part, f"{path}.parts[{i}]") for i, part in enumerate(message.parts))
    only_text = len(parts) == 1 and isinstance(parts[0], TextPart)
    return Message(
        role=message.role,
        # One text is sent as text: not every server takes a list of parts.
        content=parts[0].text if only_text and isinstance(parts[0], TextPart) else (parts or ""),
        tool_call_id=message.tool_call_id or None,
        tool_calls=tuple(ToolCall(call.id, call.name, call.arguments) for call in message.tool_calls),
    )


def _part(part: chat_pb2.ContentPart, path: str) -> Part:
    kind = part.WhichOneof("part")
    if kind == "text":
        return TextPart(part.text)
    if kind != "image":
        raise InvalidRequest("a part is text or an image", field=path)
    if not part.image.content or not part.image.media_type.startswith("image/"):
        raise InvalidRequest("an image needs its bytes and a media type such as image/jpeg", field=f"{path}.image")
    return ImagePart(part.image.content, part.image.media_type)


def _json_object(text: str, field: str) -> dict[str, Any] | None:
    value = _json(text, field)
    if value is None or isinstance(value, dict):
        return value
    raise InvalidRequest("must be a JSON object", field=field)


def _json_objects(text: str, field: str) -> tuple[dict[str, Any], ...]:
    value = _json(text, field)
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return tuple(value)
    raise InvalidRequest("must be a JSON array of objects", field=field)


def _json(text: str, field: str) -> Any:
    """The value, or `None` for an empty text; a JSON null is refused like any other value that is no object."""
    if not text:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"is not JSON: {error}", field=field) from None
    if value is None:
        raise InvalidRequest("must be an object or an array, not null", field=field)
    return value
