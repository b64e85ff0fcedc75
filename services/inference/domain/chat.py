"""Values of a model call: what is asked, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeAlias

JsonObject: TypeAlias = Mapping[str, Any]

_EMPTY: JsonObject = MappingProxyType({})


class Role(StrEnum):
    """What a call is for; every role has its own endpoints."""

    AGENT = "agent"
    TOOL = "tool"
    VISION = "vision"
    JUDGE = "judge"
    EVOLVE = "evolve"
    EMBED = "embed"


class CacheMode(StrEnum):
    """How a call uses the response cache."""

    USE = "use"
    """Read it and write it."""
    REFRESH = "refresh"
    """Skip the read, write the new answer."""
    BYPASS = "bypass"
    """Neither read nor write."""


class CacheStatus(StrEnum):
    """Where the answer of a call came from."""

    HIT = "hit"
    """From the response cache; no upstream was called."""
    MISS = "miss"
    """From an upstream: the cache had nothing, or did not answer in time."""
    JOINED = "joined"
    """From the upstream call of an identical call in flight."""
    REFRESH = "refresh"
    """From an upstream, asked for with `CacheMode.REFRESH`."""
    BYPASS = "bypass"
    """From an upstream, asked for with `CacheMode.BYPASS`."""


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """What a call is made for, as its `llm_calls` row names it; no part of the cache key. Empty text means none."""

    workspace: str = ""
    run_id: str = ""
    parent_call: str = ""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of text in a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image in a message, as the bytes of its file; `media_type` is e.g. `image/jpeg`."""

    content: bytes
    media_type: str = "image/jpeg"


Part: TypeAlias = TextPart | ImagePart


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function call that the model asks for; `arguments` is the JSON text exactly as the model wrote it."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    `role` is `system`, `user`, `assistant` or `tool`. `content` is text, or parts where images come with it.
    `tool_call_id` says what a `tool` message answers; `tool_calls` repeats what an `assistant` message asked for.
    """

    role: str
    content: str | tuple[Part, ...]
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A chat call.

    `parameters` are sampling parameters under their OpenAI names (`temperature`, `max_tokens`, `seed`, ...); unknown
    ones are sent on as they are and override the endpoint's defaults. `response_format` and `tools` have the OpenAI
    form and are sent as they are; `None` and `()` mean that the field is not sent.
    """

    role: Role
    messages: tuple[Message, ...]
    parameters: JsonObject = field(default_factory=lambda: _EMPTY)
    response_format: JsonObject | None = None
    tools: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the upstream reports them."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallPiece:
    """A piece of the tool call at `index`; its texts are to be appended to what came before."""

    index: int
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Delta:
    """What one or more consecutive events of a stream add; parts they do not touch are empty."""

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallPiece, ...] = ()


def joined(deltas: Sequence[Delta]) -> Delta:
    """Consecutive deltas as one. Raises IndexError when there is none."""
    if len(deltas) == 1:
        return deltas[0]
    return Delta(
        content="".join([delta.content for delta in deltas]),
        reasoning="".join([delta.reasoning for delta in deltas]),
        tool_calls=tuple(piece for delta in deltas for piece in delta.tool_calls),
    )


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer of a model: everything that the response cache keeps, so that a hit equals a miss.

    `finish_reason` is `None` where the upstream ended with `[DONE]` and named none; `usage` is `None` where it sent
    none. `model` is the name that the upstream reported, or else the one that was asked for.
    """

    content: str
    reasoning: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str | None
    usage: Usage | None
    model: str

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text in it that the upstream chose."""
        calls = (text for call in self.tool_calls for text in (call.call_id, call.name, call.arguments))
        return (self.content, self.reasoning, self.model, self.finish_reason or "", *calls)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one answer; `None` where nothing was streamed (a cache hit), or no token or only one came."""

    total_seconds: float
    first_token_seconds: float | None = None
    largest_gap_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ChatResult:
    """The answer to one call, always a complete one: anything else is raised as an error.

    `call_id` names the `llm_calls` row. `attempts` counts upstream requests (0 for a cache hit). `endpoint` is the
    name of the endpoint that answered.
    """

    completion: Completion
    call_id: str
    endpoint: str
    cache_status: CacheStatus
    attempts: int
    timing: Timing

    @property
    def content(self) -> str:
        """The text of the answer; empty where the model sent none."""
        return self.completion.content

    @property
    def reasoning(self) -> str:
        """The reasoning text, for models that send it apart."""
        return self.completion.reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in the order of their index."""
        return self.completion.tool_calls

    @property
    def finish_reason(self) -> str | None:
        """`stop`, `length`, `tool_calls`, ...; `None` where the upstream named none."""
        return self.completion.finish_reason

    @property
    def usage(self) -> Usage | None:
        """Token counts, or `None` where the upstream reported none."""
        return self.completion.usage


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Texts to embed with the `embed` role; `parameters` as in `ChatRequest`."""

    texts: tuple[str, ...]
    parameters: JsonObject = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One vector a text, in the order of the texts; what the response cache keeps of an embedding call."""

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage | None
    model: str

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text in it that the upstream chose."""
        return (self.model,)


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """The answer to one embedding call; fields as in `ChatResult`."""

    embeddings: Embeddings
    call_id: str
    endpoint: str
    cache_status: CacheStatus
    attempts: int
    timing: Timing

    @property
    def vectors(self) -> tuple[tuple[float, ...], ...]:
        """One vector a text, in the order of the texts."""
        return self.embeddings.vectors
