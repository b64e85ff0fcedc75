"""The JSON bodies that are sent to an OpenAI-compatible upstream."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import orjson

from services.inference.domain.chat import ChatRequest, EmbedRequest, ImagePart, Message, Part, ToolCall
from services.inference.domain.endpoint import Endpoint
from services.inference.domain.errors import InvalidRequest, RequestTooLarge
from services.inference.domain.salt import seed_of_salt

MAX_EMBED_TEXTS = 2048
MESSAGE_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
RESERVED_PARAMETERS = frozenset({"model", "messages", "input", "stream", "stream_options", "response_format", "tools"})


def chat_body(request: ChatRequest, endpoint: Endpoint, *, salt: str | None, seed_from_salt: bool) -> dict[str, Any]:
    """The body of a streamed chat completion; the caller's parameters win over the endpoint's.

    Raises `InvalidRequest` naming the field.
    """
    if not request.messages:
        raise InvalidRequest("a chat needs at least one message", field="messages")
    body: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [_message(message, f"messages[{i}]") for i, message in enumerate(request.messages)],
        **endpoint.parameters,
        **checked_parameters(request.parameters),
    }
    if seed_from_salt and salt is not None:
        body["seed"] = seed_of_salt(salt)
    if request.response_format is not None:
        body["response_format"] = request.response_format
    if request.tools:
        body["tools"] = list(request.tools)
    # Some servers accept only 1: the answer is one message, and no other choice would be read.
    if body.get("n", 1) != 1:
        raise InvalidRequest("`n` must be 1: a call has one answer", field="parameters.n")
    body["stream"] = True
    body["stream_options"] = {"include_usage": True}
    return body


def embed_body(request: EmbedRequest, endpoint: Endpoint) -> dict[str, Any]:
    """The body of an embeddings call. Raises `InvalidRequest` naming the field."""
    if not 1 <= len(request.texts) <= MAX_EMBED_TEXTS:
        text = f"an embedding call takes 1 to {MAX_EMBED_TEXTS} texts, not {len(request.texts)}"
        raise InvalidRequest(text, field="texts")
    for index, text in enumerate(request.texts):
        if not text:
            raise InvalidRequest("an empty text has no embedding", field=f"texts[{index}]")
    parameters = {**endpoint.parameters, **checked_parameters(request.parameters)}
    return {"model": endpoint.model, "input": list(request.texts), **parameters}


def checked_parameters(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The sampling parameters as they are. Raises `InvalidRequest` for names of fields, NaN and infinity."""
    for name, value in parameters.items():
        if name in RESERVED_PARAMETERS:
            raise InvalidRequest(f"`{name}` is set by its own field, not as a parameter", field=f"parameters.{name}")
        if not _finite(value):
            raise InvalidRequest(f"`{name}` holds a number that JSON has no form for", field=f"parameters.{name}")
    return parameters


def content_bytes(request: ChatRequest) -> int:
    """About how many bytes the texts and images of the messages have."""
    return sum(_message_bytes(message) for message in request.messages)


def check_size(size_bytes: int, max_bytes: int) -> None:
    """Raise `RequestTooLarge` when the messages have more than `max_bytes` bytes."""
    if size_bytes > max_bytes:
        text = f"the messages have {size_bytes / 2**20:.1f} MiB; at most {max_bytes / 2**20:.0f} MiB are accepted"
        raise RequestTooLarge(text, field="messages")


def _message_bytes(message: Message) -> int:
    if isinstance(message.content, str):
        return len(message.content)
    return sum(len(part.content if isinstance(part, ImagePart) else part.text) for part in message.content)


def _finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_finite, value))
    return True


def _message(message: Message, path: str) -> dict[str, Any]:
    if message.role not in MESSAGE_ROLES:
        raise InvalidRequest(f"`{message.role}` is not a message role", field=f"{path}.role")
    content = message.content if isinstance(message.content, str) else [_part(part) for part in message.content]
    body: dict[str, Any] = {"role": message.role, "content": content}
    if message.name is not None:
        body["name"] = message.name
    if message.tool_call_id is not None:
        body["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        body["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
    return body


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        url = f"data:{part.media_type};base64,{base64.b64encode(part.content).decode('ascii')}"
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "text", "text": part.text}


def _tool_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def encode_json(body: dict[str, Any], *, sort_keys: bool = False) -> bytes:
    """The body as JSON; its keys keep their order (a schema's properties have one) unless `sort_keys`.

    Raises `InvalidRequest` for values that JSON has no form for.
    """
    try:
        return orjson.dumps(body, default=_as_json, option=orjson.OPT_SORT_KEYS if sort_keys else None)
    except orjson.JSONEncodeError as error:
        raise InvalidRequest(f"the request can not be written as JSON: {error}") from error


def _as_json(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)
