"""Upstreams over HTTP: the one place that knows the HTTP library.

The API is httpx's, the transport aiohttp's (by way of `httpx-aiohttp`); the ADR on the transport has the figures.
Requests go to the transport itself: redirects, cookies and authentication, which httpx's client adds, are none of ours.
Slots bound the calls in flight, so that the pool itself has no limit and nobody waits inside it.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from services.inference.domain.endpoint import Endpoint
from services.inference.domain.outcome import AttemptFault, Outcome
from services.inference.use_cases.ports import UpstreamResponse

# Less than the 5 s after which uvicorn, and so vLLM, closes an idle connection: a request must not meet that moment.
_KEEPALIVE_SECONDS = 4.0
_PERMANENT = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL, aiohttp.InvalidURL)
# aiohttp's own errors are those for which httpx-aiohttp has no name, such as a response that is no HTTP.
_TRANSIENT = (httpx.TimeoutException, httpx.TransportError, aiohttp.ClientError, OSError)


class HttpxUpstream:
    """Implements `Upstream`. Build it inside a running loop; `close` it there."""

    def __init__(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_SECONDS)
        # A large body (images) is in memory whichever way it is handed over, so that aiohttp's advice saves nothing.
        warnings.filterwarnings("ignore", "Sending a large body directly", ResourceWarning)
        # No cookies: one caller's session must never reach another's request.
        session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        self._transport = AiohttpTransport(client=session)
        self._heads: dict[tuple[str, str], tuple[httpx.URL, httpx.Headers]] = {}

    @asynccontextmanager
    async def post(self, endpoint: Endpoint, path: str, payload: bytes) -> AsyncIterator[UpstreamResponse]:
        """See `Upstream.post`."""
        try:
            response = await self._transport.handle_async_request(self._request(endpoint, path, payload))
        except (*_PERMANENT, *_TRANSIENT) as error:
            raise _fault(error) from None
        try:
            yield _Response(response)
        finally:
            await response.aclose()

    def _request(self, endpoint: Endpoint, path: str, payload: bytes) -> httpx.Request:
        """The request; URL and headers of an endpoint are parsed once."""
        head = self._heads.get((endpoint.name, path))
        if head is None:
            head = httpx.URL(endpoint.base_url + path), httpx.Headers(_headers(endpoint))
            self._heads[endpoint.name, path] = head
        timeout = {"connect": endpoint.timeouts.connect}
        return httpx.Request("POST", head[0], headers=head[1], content=payload, extensions={"timeout": timeout})

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.aclose()


class _Response:
    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def content_type(self) -> str:
        return str(self._response.headers.get("content-type", "")).partition(";")[0].strip().lower()

    @property
    def retry_after(self) -> str | None:
        value = self._response.headers.get("retry-after")
        return None if value is None else str(value)

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._body():
                yield piece
        except (httpx.DecodingError, *_TRANSIENT) as error:
            raise _fault(error) from None

    def _body(self) -> AsyncIterator[bytes]:
        # No encoding was asked for; decoding is for servers that compress all the same.
        encoded = self._response.headers.get("content-encoding", "identity") != "identity"
        return self._response.aiter_bytes() if encoded else self._response.aiter_raw()


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
    headers["accept-encoding"] = "identity"
    if endpoint.api_key:
        headers["authorization"] = f"Bearer {endpoint.api_key}"
    return headers


def _fault(error: Exception) -> AttemptFault:
    outcome = Outcome.PERMANENT if isinstance(error, _PERMANENT) else Outcome.TRANSIENT
    return AttemptFault(outcome, f"{type(error).__name__}: {error}".rstrip(": "))
