"""The upstream of the inference benchmark: a process of its own that answers at once with bytes made beforehand.

    python -m bench.inference_upstream PORT

A request whose model is `stream20` gets a stream of 20 chunks, any other a stream of one, or a plain JSON answer when
it asks for no stream. It does as little as a server can, so that what is measured is what stands before it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import uvloop


def _chunk(content: str | None, finish: str | None = None) -> bytes:
    delta = {} if content is None else {"content": content}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _stream(chunk_count: int) -> bytes:
    usage = {"prompt_tokens": 9, "completion_tokens": chunk_count, "total_tokens": 9 + chunk_count}
    last = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [],
        "usage": usage,
    }
    events = [_chunk("word ") for _ in range(chunk_count)]
    events += [_chunk(None, "stop"), b"data: " + json.dumps(last).encode() + b"\n\n", b"data: [DONE]\n\n"]
    framed = b"".join(f"{len(event):x}\r\n".encode() + event + b"\r\n" for event in events)
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        + framed
        + b"0\r\n\r\n"
    )


def _plain() -> bytes:
    message = {"role": "assistant", "content": "word "}
    body = json.dumps({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
    }).encode()  # fmt: skip
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


ONE, TWENTY, PLAIN = _stream(1), _stream(20), _plain()


class Upstream(asyncio.Protocol):
    """One connection, kept alive."""

    def __init__(self) -> None:
        self._received = b""
        self._transport: Any = None  # uvloop's transports are no subclasses of asyncio's

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._received) < end + 4 + length:
                return
            body = self._received[end + 4 : end + 4 + length]
            self._received = self._received[end + 4 + length :]
            self._transport.write(_answer(body))


def _answer(body: bytes) -> bytes:
    compact = body.replace(b" ", b"")
    if b'"stream":true' not in compact:
        return PLAIN
    return TWENTY if b"stream20" in compact else ONE


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
