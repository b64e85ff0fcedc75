"""Sends one chat answer over HTTP in the shape that a fault plan asks for."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from aiohttp import web

from services.simulator.domain import wire
from services.simulator.domain.faults import FaultPlan, LatencyPlan
from services.simulator.domain.models import ChatCall, Reply, tokens

_EVENT_STREAM = "text/event-stream"
_JSON = "application/json"
_PAGE = b"<!DOCTYPE html><html><head><title>Welcome</title></head><body><h1>Service portal</h1></body></html>"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One answer to be sent: what was asked, what is said, which fault it suffers, how long it takes."""

    request: web.Request
    call: ChatCall
    reply: Reply
    fault: FaultPlan
    latency: LatencyPlan

    async def send(self) -> web.StreamResponse:
        """Sends the answer; the response returned is complete, or its connection is closed."""
        await _pause(self.latency.first_token_seconds)
        refusal = await self._without_text()
        if refusal is not None:
            return refusal
        if self.fault.kind == "length":
            cut = _cut_short(self.reply)
            return await replace(self, reply=cut, fault=replace(self.fault, kind="")).send_text()
        return await self.send_text()

    async def send_text(self) -> web.StreamResponse:
        """Sends the text, whole or as a stream, up to the point where the fault strikes."""
        if not self.call.stream:
            return await self._send_whole()
        text, closing = wire.text_events(self.call, self.reply), wire.closing_events(self.call, self.reply)
        kind = self.fault.kind
        if kind in ("reset_after", "clean_cut", "stream_error", "stalled"):
            return await self._send_part(text[: self.fault.after_chunks])
        events = wire.reformed([*text, *closing], kind)
        at_once = not kind and not self.latency.between_seconds
        if at_once:
            return web.Response(body=b"".join(events), content_type=_EVENT_STREAM)
        response = await self._open_stream()
        await self._write(response, events)
        if kind == "held_open":
            await asyncio.sleep(self.fault.hold_seconds)
        await response.write_eof()
        return response

    async def _without_text(self) -> web.StreamResponse | None:
        """The answer of a fault that shows nothing of the model's text; None where the text is to be sent."""
        kind = self.fault.kind
        if kind == "rate_limited":
            body = wire.error_body("Rate limit reached.", 429, "rate_limit_error")
            return web.Response(
                status=429, body=body, content_type=_JSON, headers={"Retry-After": self.fault.retry_after}
            )
        if kind == "server_error":
            body = wire.error_body("The server is overloaded.", 503, "server_error")
            return web.Response(status=503, body=body, content_type=_JSON)
        if kind == "bad_request":
            body = wire.error_body("The request is not valid.", 400, "invalid_request_error")
            return web.Response(status=400, body=body, content_type=_JSON)
        if kind == "html":
            return web.Response(body=_PAGE, content_type="text/html")
        if kind == "empty":
            return web.Response(body=b"", content_type=_EVENT_STREAM if self.call.stream else _JSON)
        if kind == "reset_before":
            return self._reset(web.Response())
        if kind == "silent":
            await asyncio.sleep(self.fault.hold_seconds)
            return self._reset(web.Response())
        return None

    async def _send_whole(self) -> web.StreamResponse:
        body = wire.whole_completion(self.call, self.reply)
        kind = self.fault.kind
        await _pause(self.latency.between_seconds * wire.PIECES)
        if kind == "stream_error":
            return web.Response(
                status=500, body=wire.error_body("The model crashed.", 500, "server_error"), content_type=_JSON
            )
        if kind == "clean_cut":
            return web.Response(body=body[: len(body) // 2], content_type=_JSON)
        if kind in ("reset_after", "stalled"):
            response = web.StreamResponse(headers={"Content-Type": _JSON, "Content-Length": str(len(body))})
            await response.prepare(self.request)
            await response.write(body[: len(body) // 2])
            await _pause(self.fault.hold_seconds if kind == "stalled" else 0.0)
            return self._reset(response)
        return web.Response(body=body, content_type=_JSON)

    async def _send_part(self, events: Sequence[bytes]) -> web.StreamResponse:
        response = await self._open_stream()
        await self._write(response, events)
        if self.fault.kind in ("reset_after", "stalled"):
            # Without a moment for the peer to read, a reset discards what is still in its buffer.
            await asyncio.sleep(self.fault.hold_seconds if self.fault.kind == "stalled" else 0.01)
            return self._reset(response)
        if self.fault.kind == "stream_error":
            await response.write(wire.error_event("The model crashed.", 500))
        await response.write_eof()
        return response

    async def _open_stream(self) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": _EVENT_STREAM, "Cache-Control": "no-cache"})
        response.enable_chunked_encoding()
        await response.prepare(self.request)
        return response

    async def _write(self, response: web.StreamResponse, events: Sequence[bytes]) -> None:
        for index, event in enumerate(events):
            if index:
                await _pause(self.latency.between_seconds)
            await response.write(event)

    def _reset(self, response: web.StreamResponse) -> web.StreamResponse:
        """Closes the connection with a TCP reset; writing to the response afterwards fails quietly in aiohttp."""
        transport = self.request.transport
        if transport is not None:
            connection = transport.get_extra_info("socket")
            if connection is not None:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            transport.abort()
        return response


def _cut_short(reply: Reply) -> Reply:
    content = reply.content[: max(1, len(reply.content) // 2)]
    return replace(reply, content=content, finish_reason="length", completion_tokens=tokens(content))


async def _pause(seconds: float) -> None:
    if seconds > 0:
        await asyncio.sleep(seconds)
