"""What a prompt says, read by its tags: the only way the models know anything of the question.

Every template of the product puts each value between tags of its own name on lines of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from services.skills import section_spans

_OPTION = re.compile(r"^\(?([A-Z])[.):]\s*(.*)$")
_OBSERVATION = re.compile(r'<observation tool="([^"]*)"([^>]*)>\n?(.*?)\n?</observation>', re.DOTALL)
_FAULT = re.compile(r"<fault\b[^>]*>\n?(.*?)\n?</fault>", re.DOTALL)
_SKILL = re.compile(r'<skill name="([^"]*)"[^>]*>\n?(.*?)\n?</skill>', re.DOTALL)
_SKILLS_BLOCK = re.compile(r"^<skills>[ \t]*\n.*?^</skills>", re.DOTALL | re.MULTILINE)
FROZEN_SECTIONS = ("## Output format", "## Tools", "## Tree structure")
_CATALOGUE_LINE = re.compile(r"^- ([a-z0-9][a-z0-9._-]*): (.*)$", re.MULTILINE)
_STEPS_LEFT = re.compile(r'steps_left="(\d+)"')


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its letter and its text without the letter."""

    letter: str
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the conversation: the action the model took, and what it was shown."""

    tool: str
    args: dict[str, Any]
    output: str
    fault: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """An agent conversation as far as it has gone.

    `identity` is what all of its turns have in common, `instructions` what the system prompt says besides skills and
    the sections that programs read, `skills` the texts shown so far, `catalogue` the (name, description) of skills that
    can be read.
    """

    identity: str
    instructions: str
    skills: tuple[str, ...]
    catalogue: tuple[tuple[str, str], ...]
    question: str
    options: tuple[Option, ...]
    overview: str
    steps: tuple[Step, ...]
    steps_left: int
    tools: frozenset[str]
    turns: int


def tag(name: str, text: str) -> str:
    """The text between the last pair of `<name>` tags that stand on lines of their own; empty where there is none."""
    blocks = re.findall(rf"^<{re.escape(name)}>[ \t]*\n(.*?)\n?^</{re.escape(name)}>", text, re.DOTALL | re.MULTILINE)
    return blocks[-1].strip("\n") if blocks else ""


def read_options(text: str) -> tuple[Option, ...]:
    """Options from lines `A. text`; a line without a letter continues the option above it."""
    options: list[Option] = []
    for line in text.splitlines():
        match = _OPTION.match(line.strip())
        if match:
            options.append(Option(match[1], match[2].strip()))
        elif options and line.strip():
            last = options.pop()
            options.append(Option(last.letter, f"{last.text} {line.strip()}"))
    return tuple(options)


def content_text(message: dict[str, Any]) -> str:
    """The text of one message, whether its content is a string, null or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        str(part.get("text", "")) for part in content if isinstance(part, dict) and part.get("type") == "text"
    )


@lru_cache(maxsize=256)
def skill_texts(system: str) -> tuple[str, ...]:
    """The text of every skill in force."""
    return tuple(match[1] for match in _SKILL.findall(system))


@lru_cache(maxsize=256)
def instructions(system: str) -> str:
    """A system prompt without the skills and without the sections that say what tools, tree and replies look like."""
    text = _SKILLS_BLOCK.sub("", system)
    for _, span in reversed(section_spans(text, FROZEN_SECTIONS)):
        text = text[: span.start] + text[span.end :]
    return text


@lru_cache(maxsize=256)
def skill_catalogue(system: str) -> tuple[tuple[str, str], ...]:
    """(name, description) of the skills that a prompt lists instead of showing them."""
    shown = tag("skills", system)
    return () if _SKILL.search(shown) else tuple(_CATALOGUE_LINE.findall(shown))


@lru_cache(maxsize=256)
def tools_named(system: str) -> frozenset[str]:
    """The tools that the section `## Tools` of a system prompt describes."""
    section = re.search(r"^## Tools[^\n]*\n(.*?)(?=^## |\Z)", system, re.DOTALL | re.MULTILINE)
    return frozenset(re.findall(r"[a-z]+(?:_[a-z]+)+", section[1])) if section else frozenset()


def read_conversation(messages: Sequence[dict[str, Any]]) -> Conversation:
    """The state of an agent's conversation, from its messages alone."""
    system = "\n".join(content_text(m) for m in messages if m.get("role") == "system")
    turns = [m for m in messages if m.get("role") != "system"]
    first = content_text(turns[0]) if turns else ""
    steps = tuple(_steps(turns[1:]))
    last = content_text(turns[-1]) if turns else ""
    found = _STEPS_LEFT.findall(last)
    allowed = tag("max_steps", first).strip()
    left = int(found[-1]) if found else int(allowed) - len(steps) if allowed.isdigit() else 99
    return Conversation(
        identity=f"{system}\x1e{first}",
        instructions=instructions(system),
        skills=(*skill_texts(system), *(text for step in steps for text in skill_texts(step.output))),
        catalogue=skill_catalogue(system),
        question=tag("question", first),
        options=read_options(tag("options", first)),
        overview=tag("overview", first),
        steps=steps,
        steps_left=left,
        tools=tools_named(system),
        turns=len(turns),
    )


def _steps(turns: Sequence[dict[str, Any]]) -> list[Step]:
    steps: list[Step] = []
    for turn, answer in pairwise(turns):
        if turn.get("role") != "assistant" or answer.get("role") == "assistant":
            continue
        tool, args = _action(content_text(turn))
        text = content_text(answer)
        fault = _FAULT.search(text)
        observation = _OBSERVATION.search(text)
        steps.append(Step(tool, args, observation[3] if observation else "", fault[1] if fault else ""))
    return steps


def _action(text: str) -> tuple[str, dict[str, Any]]:
    try:
        action = json.loads(text)["action"]
        return str(action["tool"]), dict(action.get("args") or {})
    except (ValueError, KeyError, TypeError):
        return "", {}
