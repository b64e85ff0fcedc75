"""What the response cache keeps of an answer: JSON bytes, never a pickle."""

from __future__ import annotations

from typing import Any

import orjson

from services.inference.domain.chat import Completion, Embeddings, ToolCall, Usage


def encode_answer(value: Completion | Embeddings, endpoint: str) -> bytes:
    """The whole answer and the name of the endpoint that gave it, as JSON."""
    return orjson.dumps({"endpoint": endpoint, "value": value})


def decode_completion(stored: bytes) -> tuple[Completion, str] | None:
    """The answer and its endpoint, or `None` for bytes that `encode_answer` did not write."""
    try:
        fields, endpoint = _fields(stored)
        fields["tool_calls"] = tuple(ToolCall(**call) for call in fields["tool_calls"])
        return Completion(**fields), endpoint
    except (ValueError, TypeError, KeyError):
        return None


def decode_embeddings(stored: bytes) -> tuple[Embeddings, str] | None:
    """The vectors and their endpoint, or `None` for bytes that `encode_answer` did not write."""
    try:
        fields, endpoint = _fields(stored)
        fields["vectors"] = tuple(map(tuple, fields["vectors"]))
        return Embeddings(**fields), endpoint
    except (ValueError, TypeError, KeyError):
        return None


def _fields(stored: bytes) -> tuple[dict[str, Any], str]:
    envelope = orjson.loads(stored)
    fields = dict(envelope["value"])
    fields["usage"] = None if fields["usage"] is None else Usage(**fields["usage"])
    return fields, str(envelope["endpoint"])
