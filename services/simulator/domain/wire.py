"""The bytes of OpenAI-compatible answers, sound ones and those a fault distorts."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from services.simulator.domain.models import ChatCall, Reply

PIECES = 5
ODD_PIECE_BYTES = 7
# A fixed time: the same request gives the same bytes.
CREATED = 1_700_000_000
DONE = b"data: [DONE]\n\n"


def _to_bytes(record: Any) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def completion_id(call: ChatCall, reply: Reply) -> str:
    """An id that depends on the answer only."""
    digest = hashlib.blake2b(f"{call.model}/{call.seed}/{reply.content}".encode("utf-8", "replace"), digest_size=12)
    return f"chatcmpl-{digest.hexdigest()}"


def usage(reply: Reply) -> dict[str, int]:
    """The usage object of a reply."""
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }


def whole_completion(call: ChatCall, reply: Reply) -> bytes:
    """The body of an answer that is not streamed."""
    message = {"role": "assistant", "content": reply.content}
    return _to_bytes(
        {
            "id": completion_id(call, reply),
            "object": "chat.completion",
            "created": CREATED,
            "model": call.model,
            "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
            "usage": usage(reply),
        }
    )


def text_pieces(content: str) -> list[str]:
    """The text in at most `PIECES` pieces of about equal length; one empty piece for an empty text."""
    size = max(8, -(-len(content) // PIECES))
    return [content[start : start + size] for start in range(0, len(content), size)] or [""]


def text_events(call: ChatCall, reply: Reply) -> list[bytes]:
    """The server-sent events that carry the text."""
    head = _head(call, reply)
    events: list[bytes] = []
    for index, piece in enumerate(text_pieces(reply.content)):
        role = b'"role":"assistant",' if index == 0 else b""
        delta = b"{" + role + b'"content":' + _to_bytes(piece) + b"}"
        events.append(head + b'"choices":[{"index":0,"delta":' + delta + b',"finish_reason":null}]}\n\n')
    return events


def closing_events(call: ChatCall, reply: Reply) -> list[bytes]:
    """The events after the text: finish reason, usage where asked for, and the end mark."""
    head = _head(call, reply)
    finish = _to_bytes([{"index": 0, "delta": {}, "finish_reason": reply.finish_reason}])
    events = [head + b'"choices":' + finish + b"}\n\n"]
    if call.include_usage:
        events.append(head + b'"choices":[],"usage":' + _to_bytes(usage(reply)) + b"}\n\n")
    return [*events, DONE]


def _head(call: ChatCall, reply: Reply) -> bytes:
    return (
        f'data: {{"id":"{completion_id(call, reply)}","object":"chat.completion.chunk","created":{CREATED},'
        f'"model":"{call.model}",'
    ).encode()


def error_body(message: str, code: int, kind: str) -> bytes:
    """An error object as OpenAI-compatible servers send it."""
    return _to_bytes({"error": {"message": message, "type": kind, "code": code}})


def error_event(message: str, code: int) -> bytes:
    """An error inside a stream."""
    return b"data: " + error_body(message, code, "server_error") + b"\n\n"


def reformed(events: list[bytes], kind: str) -> list[bytes]:
    """The same events in the byte form that a harmless fault kind stands for; unchanged for any other kind."""
    if kind == "crlf":
        return [event.replace(b"\n", b"\r\n") for event in events]
    if kind == "lone_cr":
        return [event.replace(b"\n", b"\r") for event in events]
    if kind == "bom":
        return [b"\xef\xbb\xbf" + events[0], *events[1:]]
    if kind == "no_done":
        return [event for event in events if event != DONE]
    if kind == "odd_chunks":
        joined = b": keep-alive\n\n" + b": keep-alive\n\n".join(events)
        return [joined[start : start + ODD_PIECE_BYTES] for start in range(0, len(joined), ODD_PIECE_BYTES)]
    return events
