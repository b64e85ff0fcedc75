"""One attempt at an upstream: sends, reads, keeps the clocks; ends OK or with one classified fault (INF-2, INF-3)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime

import orjson

from services.inference.domain.chat import Completion, Delta, Embeddings, Timing
from services.inference.domain.completion_stream import CompletionStream, error_in, usage_of
from services.inference.domain.endpoint import Endpoint
from services.inference.domain.outcome import AttemptFault, Outcome, outcome_of_status
from services.inference.domain.retry_after import retry_after_seconds
from services.inference.domain.sse import EventTooLarge, SseDecoder, SseEvent
from services.inference.use_cases.ports import Upstream, UpstreamResponse

CHAT_PATH = "/chat/completions"
EMBED_PATH = "/embeddings"

_DRAIN_SECONDS = 0.5
_DRAIN_AFTER_DONE_SECONDS = 0.05
_MAX_ERROR_BODY = 64 * 1024
_MAX_EMBED_BODY = 256 * 1024 * 1024
_NOT_A_STREAM = ("text/html", "application/json", "application/xml", "text/xml")


class _Clocks:
    """The first-token, between-tokens and total timeouts of one attempt as one moving deadline.

    Deadlines are in loop time; what is measured is measured with the finer performance counter.
    """

    __slots__ = ("_first", "_gap", "_last", "_loop", "_start", "_timeouts", "_total_at", "limit", "waited_for")

    def __init__(self, endpoint: Endpoint) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeouts = endpoint.timeouts
        self._start = self._last = time.perf_counter()
        self._first: float | None = None
        self._gap: float | None = None
        self._total_at = self._loop.time() + self._timeouts.total
        self.waited_for = "first token"
        self.limit = asyncio.timeout(min(self._timeouts.first_token, self._timeouts.total))

    def tokens(self) -> None:
        """A piece of the body brought one or more tokens."""
        now = time.perf_counter()
        if self._first is None:
            self._first = now
            self.waited_for = "next token"
        else:
            self._gap = max(self._gap or 0.0, now - self._last)
        self._last = now
        self._expect_within(self._timeouts.between_tokens)

    def drain(self, seconds: float) -> None:
        """The answer is complete: read at most `seconds` more."""
        self._expect_within(seconds)

    def timing(self) -> Timing:
        """The seconds until now."""
        first = None if self._first is None else self._first - self._start
        return Timing(time.perf_counter() - self._start, first, self._gap)

    def _expect_within(self, seconds: float) -> None:
        self.limit.reschedule(min(self._loop.time() + seconds, self._total_at))


async def attempt_chat(
    upstream: Upstream, endpoint: Endpoint, payload: bytes, on_delta: Callable[[Delta], None]
) -> tuple[Completion, Timing]:
    """The whole streamed answer; `on_delta` hears of each delta as it comes.

    Raises `AttemptFault`. What happens after the terminal signal can't spoil the answer any more.
    """
    clocks = _Clocks(endpoint)
    stream = CompletionStream()
    try:
        async with clocks.limit, upstream.post(endpoint, CHAT_PATH, payload) as response:
            await _raise_unless_stream(response)
            await _read_stream(response, stream, clocks, on_delta)
    except TimeoutError:
        if not stream.terminal:
            message = f"timed out waiting for the {clocks.waited_for}"
            raise AttemptFault(Outcome.TRANSIENT, message, code="timeout") from None
    except AttemptFault:
        if not stream.terminal:
            raise
    return stream.completion(endpoint.model), clocks.timing()


async def attempt_embed(
    upstream: Upstream, endpoint: Endpoint, payload: bytes, text_count: int
) -> tuple[Embeddings, Timing]:
    """One vector for each of `text_count` texts. Raises `AttemptFault`."""
    clocks = _Clocks(endpoint)
    try:
        async with clocks.limit, upstream.post(endpoint, EMBED_PATH, payload) as response:
            if response.status != 200:
                raise await _status_fault(response)
            body = await _read_body(response, _MAX_EMBED_BODY)
    except TimeoutError:
        raise AttemptFault(Outcome.TRANSIENT, "timed out waiting for the embeddings", code="timeout") from None
    return _embeddings_in(body, text_count, endpoint.model), clocks.timing()


async def _read_stream(
    response: UpstreamResponse, stream: CompletionStream, clocks: _Clocks, on_delta: Callable[[Delta], None]
) -> None:
    decoder = SseDecoder()
    head = b""
    try:
        async for piece in response.pieces():
            if stream.done:
                continue
            if not stream.has_events and len(head) < _MAX_ERROR_BODY:
                head += piece
            _take_events(decoder.feed(piece), stream, clocks, on_delta)
        _take_events(decoder.close(), stream, clocks, on_delta)
    except EventTooLarge as error:
        raise AttemptFault(Outcome.TRANSIENT, str(error), code="malformed") from None
    if not stream.has_events:
        raise _no_stream_fault(head)


def _take_events(
    events: list[SseEvent], stream: CompletionStream, clocks: _Clocks, on_delta: Callable[[Delta], None]
) -> None:
    was_finished, was_done = stream.finished, stream.done
    brought_tokens = False
    for event in events:
        delta = stream.take(event)
        if delta is not None:
            brought_tokens = True
            on_delta(delta)
    if brought_tokens:
        clocks.tokens()
    if stream.done and not was_done:
        clocks.drain(_DRAIN_AFTER_DONE_SECONDS)
    elif stream.finished and not was_finished:
        clocks.drain(_DRAIN_SECONDS)


async def _raise_unless_stream(response: UpstreamResponse) -> None:
    if response.status != 200:
        raise await _status_fault(response)
    if response.content_type in _NOT_A_STREAM:
        raise _no_stream_fault(await _read_body(response, _MAX_ERROR_BODY))


def _no_stream_fault(body: bytes) -> AttemptFault:
    """Why a body with status 200 is no event stream: it is empty, it reports an error, or it is something else."""
    if not body.strip():
        # A stream of comments alone is a stream that ended early; a body without a byte is none at all.
        return AttemptFault(Outcome.TRANSIENT, "the upstream answered 200 with an empty body", code="empty_body")
    fault = error_in(_json_or_none(body))
    if fault is not None:
        return fault
    if all(not line or line.startswith(b":") for line in body.replace(b"\r", b"\n").split(b"\n")):
        return AttemptFault(Outcome.TRUNCATED, "the stream ended after nothing but comments")
    start = body[:80].decode("utf-8", "replace")
    message = f"the upstream answered 200 with something that is no event stream: {start!r}"
    return AttemptFault(Outcome.TRANSIENT, message, code="not_a_stream")


async def _status_fault(response: UpstreamResponse) -> AttemptFault:
    body = await _read_body(response, _MAX_ERROR_BODY)
    told = error_in(_json_or_none(body))
    text = told.message if told is not None else body[:300].decode("utf-8", "replace").strip()
    outcome = outcome_of_status(response.status)
    return AttemptFault(
        Outcome.TRANSIENT if outcome is Outcome.OK else outcome,
        f"HTTP {response.status}: {text}" if text else f"HTTP {response.status}",
        code=str(response.status),
        retry_after_seconds=retry_after_seconds(response.retry_after, datetime.now(UTC)),
    )


async def _read_body(response: UpstreamResponse, max_bytes: int) -> bytes:
    """The body, cut at `max_bytes`; of an error's body as much as came before the transport failed."""
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in response.pieces():
            pieces.append(piece)
            size += len(piece)
            if size >= max_bytes:
                break
    except AttemptFault:
        if response.status == 200:
            raise
    return b"".join(pieces)[:max_bytes]


def _json_or_none(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _embeddings_in(body: bytes, text_count: int, asked_model: str) -> Embeddings:
    parsed = _json_or_none(body)
    fault = error_in(parsed)
    if fault is not None:
        raise fault
    try:
        items = sorted(parsed["data"], key=lambda item: item["index"])  # type: ignore[index]
        vectors = tuple(tuple(float(x) for x in item["embedding"]) for item in items)
    except (TypeError, KeyError, ValueError):
        raise AttemptFault(Outcome.TRANSIENT, "the upstream's answer holds no embeddings", code="malformed") from None
    if len(vectors) != text_count or any(not vector for vector in vectors):
        message = f"the upstream gave {len(vectors)} embeddings for {text_count} texts"
        raise AttemptFault(Outcome.TRANSIENT, message, code="malformed")
    assert isinstance(parsed, dict)  # noqa: S101 -- for the type checker: it was indexed above
    model = parsed.get("model")
    return Embeddings(
        vectors, usage_of(parsed.get("usage")), model if isinstance(model, str) and model else asked_model
    )
