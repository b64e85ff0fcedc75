"""Events of a chat completion stream to one whole answer (INF-3): pure, fed event by event."""

from __future__ import annotations

from typing import Any

import orjson

from services.inference.domain.chat import Completion, Delta, Usage
from services.inference.domain.outcome import AttemptFault, Outcome, outcome_of_code
from services.inference.domain.sse import SseEvent
from services.inference.domain.tool_calls import ToolCallMerger

_MAX_MESSAGE_CHARS = 500
# Some millions of tokens, more than any model writes; in UTF-8 it still fits a gRPC message of 64 MiB.
_MAX_ANSWER_CHARS = 15 * 1024 * 1024


class CompletionStream:
    """The state of one streamed answer.

    `finished` (a `finish_reason` was seen) and `done` (`[DONE]` was seen) are the terminal signals; after the first
    of them only usage is read. `has_events` says whether anything of an event stream came at all.
    """

    __slots__ = (
        "_chars", "_content", "_finish_reason", "_model", "_reasoning", "_tool_calls", "_usage",
        "done", "finished", "has_events",
    )  # fmt: skip

    def __init__(self) -> None:
        self._chars = 0
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._tool_calls = ToolCallMerger()
        self._finish_reason: str | None = None
        self._usage: Usage | None = None
        self._model = ""
        self.finished = False
        self.done = False
        self.has_events = False

    @property
    def terminal(self) -> bool:
        """Whether the answer is complete, whatever still comes."""
        return self.finished or self.done

    def take(self, event: SseEvent) -> Delta | None:
        """What the event adds, or `None` when it carries no token.

        Raises `AttemptFault` for an error object, an `error` event and an event that is no chunk, unless the answer
        is complete already.
        """
        self.has_events = True
        if self.done:
            return None
        if event.data.strip() == b"[DONE]":
            self.done = True
            return None
        try:
            chunk = _chunk_of(event)
        except AttemptFault:
            if self.finished:
                return None
            raise
        return self._take_chunk(chunk)

    def completion(self, asked_model: str) -> Completion:
        """The whole answer. Raises `AttemptFault` (TRUNCATED) when no terminal signal was seen."""
        if not self.terminal:
            raise AttemptFault(Outcome.TRUNCATED, "the stream ended without [DONE] and without a finish_reason")
        return Completion(
            content="".join(self._content),
            reasoning="".join(self._reasoning),
            tool_calls=self._tool_calls.result(),
            finish_reason=self._finish_reason,
            usage=self._usage,
            model=self._model or asked_model,
        )

    def _take_chunk(self, chunk: dict[str, Any]) -> Delta | None:
        usage = chunk.get("usage")
        if usage is not None:
            self._usage = usage_of(usage) or self._usage
        if self.finished:
            return None
        model = chunk.get("model")
        if isinstance(model, str) and model:
            self._model = model
        choice = _first_choice(chunk)
        if choice is None:
            return None
        delta = self._take_delta(choice.get("delta") or choice.get("message"))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finish_reason = reason
            self.finished = True
        return delta

    def _take_delta(self, delta: object) -> Delta | None:
        if not isinstance(delta, dict):
            return None
        content = _text_of(delta.get("content"))
        reasoning = _text_of(delta.get("reasoning_content")) or _text_of(delta.get("reasoning"))
        pieces = delta.get("tool_calls")
        added = tuple(map(self._tool_calls.add, filter(_is_object, pieces))) if isinstance(pieces, list) else ()
        self._check_size(len(content) + len(reasoning) + sum(len(piece.arguments) for piece in added))
        if content:
            self._content.append(content)
        if reasoning:
            self._reasoning.append(reasoning)
        return Delta(content, reasoning, added) if content or reasoning or added else None

    def _check_size(self, added_chars: int) -> None:
        self._chars += added_chars
        if self._chars > _MAX_ANSWER_CHARS:
            text = f"the answer is longer than {_MAX_ANSWER_CHARS} characters"
            raise AttemptFault(Outcome.TRANSIENT, text, code="too_long")


def error_in(body: object) -> AttemptFault | None:
    """The fault that a JSON body reports, or `None` if it reports none.

    Read are `{"error": {...}}`, `{"error": "text"}`, `{"object": "error", ...}`; the code is `code`, else `type`.
    """
    if not isinstance(body, dict):
        return None
    error = body.get("error") or (body if body.get("object") == "error" else None)
    if not error:
        return None
    if not isinstance(error, dict):
        return AttemptFault(outcome_of_code(), _shortened(error), code="error")
    code, kind = error.get("code"), error.get("type")
    name = code if code not in (None, "") else (kind or "error")
    return AttemptFault(outcome_of_code(code, kind), _shortened(error.get("message") or error), code=str(name)[:100])


def usage_of(usage: object) -> Usage | None:
    """The token counts of a `usage` object, or `None` if it is none; counts that make no sense are 0."""
    if not isinstance(usage, dict):
        return None
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return Usage(prompt, completion, _count(usage.get("total_tokens")) or prompt + completion, cached)


def _chunk_of(event: SseEvent) -> dict[str, Any]:
    try:
        chunk = orjson.loads(event.data)
    except orjson.JSONDecodeError:
        chunk = None
    fault = error_in(chunk)
    if fault is None and event.name == b"error":
        fault = _error_event(chunk, event.data)
    if fault is not None:
        raise fault
    if not isinstance(chunk, dict):
        text = _shortened(event.data.decode("utf-8", "replace"))
        raise AttemptFault(Outcome.TRANSIENT, f"an event of the stream is not a JSON object: {text}", code="malformed")
    return chunk


def _error_event(chunk: object, data: bytes) -> AttemptFault:
    if isinstance(chunk, dict):
        return error_in({"error": chunk or "error"}) or AttemptFault(Outcome.TRANSIENT, "error", code="error")
    return AttemptFault(outcome_of_code(), _shortened(data.decode("utf-8", "replace")), code="error")


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _first_choice(chunk: dict[str, Any]) -> dict[str, Any] | None:
    choices = chunk.get("choices")
    if not isinstance(choices, list):
        return None
    for choice in choices:
        if isinstance(choice, dict) and choice.get("index", 0) in (0, None):
            return choice
    return None


def _text_of(value: object) -> str:
    """Text as it is, the texts of a list of parts joined, anything else (null) empty."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text_of(part.get("text")) for part in value if isinstance(part, dict))
    return ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _shortened(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _MAX_MESSAGE_CHARS else text[:_MAX_MESSAGE_CHARS] + "…"
