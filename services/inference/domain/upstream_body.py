"""The JSON bodies that are sent to an OpenAI-compatible upstream."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

from services.inference.domain.chat import ChatRequest, EmbedRequest, ImagePart, Message, Part, ToolCall
from services.inference.domain.endpoint import Endpoint
from services.inference.domain.errors import InvalidRequest, RequestTooLarge
from services.inference.domain.salt import seed_of_salt

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
    if not request.texts:
        raise InvalidRequest("an embedding call needs at least one text", field="texts")
    parameters = {**endpoint.parameters, **checked_parameters(request.parameters)}
    return {"model": endpoint.model, "input": list(request.texts), **parameters}


def checked_parameters(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The sampling parameters as they are. Raises `InvalidRequest` for names that are fields and for NaN or infinity."""
    for name, value in parameters.items():
        if name in RESERVED_PARAMETERS:
            raise InvalidRequest(f"`{name}` is set by its own field, not as a parameter", field=f"parameters.{name}")
        if not _finite(value):
            raise InvalidRequest(f"`{name}` holds a number that JSON has no form for", field=f"parameters.{name}")
    return parameters


def check_size(request: ChatRequest, max_bytes: int) -> None:
    """Raise `RequestTooLarge` when texts and images together have more than `max_bytes` bytes."""
    size = sum(_content_bytes(message) for message in request.messages)
    if size > max_bytes:
        limit = f"{max_bytes / 2**20:.0f} MiB"
        raise RequestTooLarge(f"the messages have {size / 2**20:.1f} MiB; the limit is {limit}", field="messages")


def _content_bytes(message: Message) -> int:
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
