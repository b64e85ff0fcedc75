"""An OpenAI-compatible upstream that repeats the key it is called with, in every kind of failure, and else answers."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping

import aiohttp
from aiohttp import web

_HEAD = {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]}


def _json(status: int, key: str, text: str) -> web.Response:
    error = {"error": {"message": text, "type": key, "code": key, "param": key}}
    return web.json_response(error, status=status, headers={"x-echo": key, "retry-after": "0"})


def _stream(*events: object) -> web.Response:
    body = b"".join(b"data: " + (each.encode() if isinstance(each, str) else json.dumps(each).encode()) + b"\n\n"
                    for each in events)  # fmt: skip
    return web.Response(body=body, content_type="text/event-stream")


PASSING: Mapping[str, Callable[[str], web.Response]] = {
    "server error": lambda key: _json(503, key, f"overloaded for {key}"),
    "page": lambda key: web.Response(status=502, text=f"<html>{key}</html>", content_type="text/html"),
    "error in the stream": lambda key: _stream({"error": {"message": f"denied {key}", "code": key}}),
    "garbage in the stream": lambda key: _stream(f"garbage {key}"),
    "error after a token": lambda key: _stream(_HEAD, {"error": {"message": key, "code": 500}}),
    "redirect": lambda key: web.Response(status=500, headers={"location": f"http://{key}@127.0.0.1/"}, text=key),
}
"""Failures that a later attempt may not meet, by name."""
LASTING: Mapping[str, Callable[[str], web.Response]] = {
    "key refused": lambda key: _json(401, key, f"Incorrect API key provided: {key}"),
    "forbidden": lambda key: web.Response(status=403, text=f"no {key}"),
    "a text cut inside the key": lambda key: _json(400, "x", "x" * 490 + key),
    "a page as success": lambda key: web.Response(text=f"<html>{key}</html>", content_type="text/html"),
    "the key as answer": lambda key: _stream(
        {"choices": [{"index": 0, "delta": {"content": f"Your key is {key}."}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ),
    "the key as name of the model": lambda key: _stream({**_HEAD, "model": key}, "[DONE]"),
}
"""Failures that the same request would meet again, by name."""
ALL = {**PASSING, **LASTING}


class EchoingUpstream:
    """Passes requests on to the model behind it, but fails every `every`-th in one of the passing ways.

    While `always` names a failure, every request meets it. `echoed` counts the failures by name; `keys` are the keys
    that came.
    """

    def __init__(self, model_url: str, every: int) -> None:
        self._model_url = model_url
        self._every = every
        self.always = ""
        self.requests = 0
        self.echoed: Counter[str] = Counter()
        self.keys: set[str] = set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.keys.add(key)
        self.requests += 1
        kind = self.always
        if not kind and self.requests % self._every == 0:
            kind = list(PASSING)[self.requests // self._every % len(PASSING)]
        if kind:
            self.echoed[kind] += 1
            return ALL[kind](key)
        return await self._passed_on(request)

    async def _passed_on(self, request: web.Request) -> web.StreamResponse:
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                request.method, self._model_url + request.path, data=await request.read(),
                headers={"content-type": "application/json"},
            ) as found,
        ):  # fmt: skip
            passed = web.StreamResponse(status=found.status, headers={"content-type": found.content_type})
            await passed.prepare(request)
            async for piece in found.content.iter_any():
                await passed.write(piece)
            await passed.write_eof()
            return passed


@contextlib.asynccontextmanager
async def echoing_upstream(model_port: int, every: int) -> AsyncIterator[tuple[EchoingUpstream, int]]:
    """The upstream and its port on loopback."""
    upstream = EchoingUpstream(f"http://127.0.0.1:{model_port}", every)
    application = web.Application(client_max_size=2**26)
    application.add_routes([web.route("*", "/{path:.*}", upstream.answer)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield upstream, runner.addresses[0][1]
    finally:
        await runner.cleanup()
