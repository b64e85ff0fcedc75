"""Upstreams over HTTP: the one place that knows the HTTP library; the ADR on the transport has its figures.

Slots bound the calls in flight, so that the pool itself has no limit and nobody waits inside it.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from services.inference.domain.endpoint import Endpoint
from services.inference.domain.outcome import AttemptFault, Outcome
from services.inference.use_cases.ports import UpstreamResponse

# Less than the 5 s after which uvicorn, and so vLLM, closes an idle connection: a request must not meet that moment.
_KEEPALIVE_SECONDS = 4.0
# Everything that goes wrong on the way (httpx: TimeoutException, TransportError), also an answer that is no HTTP.
_ON_THE_WAY = (aiohttp.ClientError, OSError)
# What no later attempt mends (httpx: UnsupportedProtocol); a header that can't be sent is a plain ValueError.
_PERMANENT = (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)
_Head = tuple[str, dict[str, str], aiohttp.ClientTimeout]


class AiohttpUpstream:
    """Implements `Upstream`. Build it inside a running loop; `close` it there."""

    def __init__(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_SECONDS)
        # A large body (images) is in memory whichever way it is handed over, so that aiohttp's advice saves nothing.
        warnings.filterwarnings("ignore", "Sending a large body directly", ResourceWarning)
        # No cookies: one caller's session must never reach another's request.
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        self._heads: dict[tuple[str, str], _Head] = {}

    @asynccontextmanager
    async def post(self, endpoint: Endpoint, path: str, payload: bytes) -> AsyncIterator[UpstreamResponse]:
        """See `Upstream.post`. A redirect is not followed."""
        try:
            url, headers, timeout = self._head(endpoint, path)
            response = await self._session.post(
                url, data=payload, headers=headers, timeout=timeout, allow_redirects=False
            )
        except (*_ON_THE_WAY, ValueError) as error:
            raise _fault(error) from None
        try:
            yield _Response(response)
        finally:
            # A response that was read to its end has given its connection back already; any other loses it here.
            response.close()

    def _head(self, endpoint: Endpoint, path: str) -> _Head:
        """URL, headers and timeout of an endpoint, made once."""
        head = self._heads.get((endpoint.name, path))
        if head is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=endpoint.timeouts.connect)
            head = endpoint.base_url + path, _headers(endpoint), timeout
            self._heads[endpoint.name, path] = head
        return head

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()


class _Response:
    __slots__ = ("_response",)

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def content_type(self) -> str:
        return self._response.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def retry_after(self) -> str | None:
        return self._response.headers.get("retry-after")

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response.content.iter_any():
                yield piece
        except _ON_THE_WAY as error:
            raise _fault(error) from None


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
    # No encoding is asked for; aiohttp decodes what a server compresses all the same.
    headers["accept-encoding"] = "identity"
    if endpoint.api_key:
        headers["authorization"] = f"Bearer {endpoint.api_key}"
    return headers


def _fault(error: Exception) -> AttemptFault:
    permanent = isinstance(error, _PERMANENT) or not isinstance(error, _ON_THE_WAY)
    outcome = Outcome.PERMANENT if permanent else Outcome.TRANSIENT
    return AttemptFault(outcome, f"{type(error).__name__}: {error}".rstrip(": "))
