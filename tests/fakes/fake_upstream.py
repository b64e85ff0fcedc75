"""A scriptable HTTP server that answers with exactly the bytes it is told, for tests of the governed call."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Pause:
    """Wait this many seconds."""

    seconds: float


class Reset:
    """Break the connection with a TCP reset."""


class Hold:
    """Keep the socket open, silent, until the client closes it."""


class Close:
    """End the connection in order (FIN)."""


Step = bytes | Pause | Reset | Hold | Close
Reply = list[Step]


@dataclass
class Seen:
    """One request as it arrived."""

    head: str
    body: bytes
    arrived: float
    closed: float | None = None

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class FakeUpstream:
    """Replies in order from `script`, then with `default`; a reply may be a function of the request."""

    default: Reply | Callable[[Seen], Reply] = field(default_factory=list)
    script: list[Reply | Callable[[Seen], Reply]] = field(default_factory=list)
    requests: list[Seen] = field(default_factory=list)
    open_connections: int = 0
    accepted_connections: int = 0
    running: int = 0
    most_running: int = 0
    port: int = 0

    @property
    def base_url(self) -> str:
        """What an endpoint is configured with."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def calls(self) -> int:
        """How many requests arrived."""
        return len(self.requests)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.open_connections += 1
        self.accepted_connections += 1
        try:
            while (seen := await _read_request(reader)) is not None:
                self.requests.append(seen)
                reply = self.script.pop(0) if self.script else self.default
                self.running += 1
                self.most_running = max(self.most_running, self.running)
                try:
                    if not await self._play(reply(seen) if callable(reply) else reply, reader, writer):
                        return
                finally:
                    self.running -= 1
                    seen.closed = time.monotonic()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            self.open_connections -= 1
            writer.close()

    async def _play(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Play the steps while watching for the client to go; False when the connection is over."""
        gone = asyncio.ensure_future(reader.read(1))
        try:
            for step in reply:
                if isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()
                elif isinstance(step, Pause):
                    if (await asyncio.wait((gone,), timeout=step.seconds))[0]:
                        return False
                elif isinstance(step, Hold):
                    await asyncio.wait((gone,))
                    return False
                elif isinstance(step, Reset):
                    linger = struct.pack("ii", 1, 0)
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    writer.transport.abort()
                    return False
                else:
                    return False
            return True
        finally:
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await gone


async def _read_request(reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    lengths = [line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length:")]
    body = await reader.readexactly(int(lengths[0]) if lengths else 0)
    return Seen(head, body, time.monotonic())


@contextlib.asynccontextmanager
async def fake_upstream(
    default: Reply | Callable[[Seen], Reply] | None = None, *script: Any
) -> AsyncIterator[FakeUpstream]:
    """A listening fake; connections still open at the end are cut."""
    fake = FakeUpstream(default=ok_reply() if default is None else default, script=list(script))
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        with contextlib.suppress(asyncio.CancelledError):
            await fake.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**26)
    fake.port = server.sockets[0].getsockname()[1]
    try:
        yield fake
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def event(data: Any) -> bytes:
    """One `data:` event; anything but bytes becomes JSON."""
    text = data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode()
    return b"data: " + text + b"\n\n"


def chunk(content: str | None = None, finish: str | None = None, delta: dict[str, Any] | None = None) -> bytes:
    """The event of one chat completion chunk; `delta` is the whole delta, or else it holds `content` alone."""
    fields = delta or ({} if content is None else {"content": content})
    return event({"id": "c", "model": "m-real", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
USAGE_EVENT = event({"id": "c", "choices": [], "usage": USAGE})
DONE = event(b"[DONE]")


def head(
    status: str = "200 OK", content_type: str = "text/event-stream", *extra: str, length: int | None = None
) -> bytes:
    """A response head; chunked unless `length` is given."""
    size = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}", size, *extra]
    return "\r\n".join([*lines, "", ""]).encode()


def framed(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


END = b"0\r\n\r\n"


def stream(*steps: Step | bytes, end: bool = True) -> Reply:
    """A 200 event stream; bytes are framed as chunks, other steps stand as they are; `end` closes the chunked body."""
    framed_steps = [framed(step) if isinstance(step, bytes) else step for step in steps]
    return [head(), *framed_steps, *([END] if end else [])]


def plain(body: bytes, status: str = "200 OK", content_type: str = "application/json", *extra: str) -> Reply:
    """A response with a length."""
    return [head(status, content_type, *extra, length=len(body)) + body]


def ok_reply(*texts: str) -> Reply:
    """A complete stream of `texts`, with usage."""
    return stream(*(chunk(text) for text in (texts or ("Hel", "lo"))), chunk(None, "stop"), USAGE_EVENT, DONE)


def error_reply(status: int, *extra: str, message: str = "no") -> Reply:
    """A JSON error with that status."""
    return plain(
        json.dumps({"error": {"message": message, "code": status}}).encode(), f"{status} X", "application/json", *extra
    )


def joined(steps: Iterable[bytes]) -> bytes:
    """Several events as one piece."""
    return b"".join(steps)
