"""The simulated models by name, and one function that lets a model answer a request."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.simulator.domain.agent_model import answer_as_agent
from services.simulator.domain.answers import Answers
from services.simulator.domain.conversation import content_text, read_conversation
from services.simulator.domain.dice_model import answer_as_dice
from services.simulator.domain.errors import BadRequest, UnknownModel
from services.simulator.domain.evolve_model import answer_as_evolve
from services.simulator.domain.judge_model import answer_as_judge
from services.simulator.domain.submission import submitted_letter
from services.simulator.domain.tool_model import answer_as_tool
from services.simulator.domain.vision_model import answer_as_vision
from services.simulator.domain.words import Lexicon
from services.simulator.domain.world import World

EMBEDDING_MODEL = "sim-embed"
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A chat completion request, checked."""

    model: str
    messages: tuple[dict[str, Any], ...]
    seed: int | None
    stream: bool
    include_usage: bool
    max_tokens: int | None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model says: the text (cut if `finish_reason` is `length`), token counts, and whether it is right.

    `is_right` is None for a turn that submits nothing and for a question whose gold answer the world doesn't know.
    """

    content: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    is_right: bool | None


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What all models share: the world, its gold answers, and its notion of equal words."""

    world: World
    answers: Answers
    lexicon: Lexicon


def _all_text(messages: Sequence[dict[str, Any]]) -> str:
    return "\n".join(content_text(message) for message in messages)


_MODELS: Mapping[str, Callable[[ChatCall, Knowledge], str]] = {
    "sim-agent": lambda call, known: answer_as_agent(call.messages, call.seed, known.world, known.lexicon),
    "sim-dice": lambda call, known: answer_as_dice(call.messages, call.seed, known.world, known.answers),
    "sim-judge": lambda call, known: answer_as_judge(call.messages, call.seed, known.world, known.lexicon),
    "sim-evolve": lambda call, known: answer_as_evolve(call.messages, call.seed, known.world, known.lexicon),
    "sim-tool": lambda call, known: answer_as_tool(_all_text(call.messages), known.lexicon),
    "sim-vision": lambda call, known: answer_as_vision(call.messages),
}
MODEL_NAMES = (*_MODELS, EMBEDDING_MODEL)


def read_chat_call(body: object) -> ChatCall:
    """The request, checked. Raises BadRequest naming the field, UnknownModel for another model."""
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    model = body.get("model")
    if not isinstance(model, str) or model not in _MODELS:
        raise UnknownModel(f"model: {model!r} is not served; served are {', '.join(_MODELS)}")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        raise BadRequest("messages: must be a list of at least one object")
    options = body.get("stream_options")
    return ChatCall(
        model=model,
        messages=tuple(messages),
        seed=_whole_number(body, "seed"),
        stream=body.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        max_tokens=_positive(body, "max_completion_tokens") or _positive(body, "max_tokens"),
    )


def _whole_number(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise BadRequest(f"{name}: must be a whole number")
    return value


def _positive(body: Mapping[str, Any], name: str) -> int | None:
    value = _whole_number(body, name)
    if value is not None and value < 1:
        raise BadRequest(f"{name}: must be at least 1")
    return value


def reply_to(call: ChatCall, knowledge: Knowledge) -> Reply:
    """The model's answer: a pure function of the call and the world."""
    content = _MODELS[call.model](call, knowledge)
    finish_reason = "stop"
    if call.max_tokens is not None and tokens(content) > call.max_tokens:
        content, finish_reason = content[: call.max_tokens * _CHARS_PER_TOKEN], "length"
    prompt_tokens = sum(tokens(content_text(message)) for message in call.messages)
    return Reply(content, finish_reason, prompt_tokens, tokens(content), _is_right(call, content, knowledge))


def tokens(text: str) -> int:
    """A token count as servers report it, by the usual rule of four characters a token."""
    return math.ceil(len(text) / _CHARS_PER_TOKEN)


def _is_right(call: ChatCall, content: str, knowledge: Knowledge) -> bool | None:
    if call.model not in ("sim-agent", "sim-dice") or knowledge.world.latency.right_factor == 1.0:
        return None
    letter = submitted_letter(content)
    if letter is None:
        return None
    conversation = read_conversation(call.messages)
    gold = knowledge.answers.find(conversation.question, conversation.options)
    return None if gold is None else letter == gold.letter
