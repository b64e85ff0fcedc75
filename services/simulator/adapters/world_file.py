"""Reading a world: a TOML file, and the question file it names."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from services.questions import parse_question_lines
from services.simulator.domain.answers import Answers
from services.simulator.domain.errors import WorldError
from services.simulator.domain.models import Knowledge
from services.simulator.domain.words import Lexicon
from services.simulator.domain.world import World

_WORLD = TypeAdapter(World)


def load_knowledge(path: Path | None) -> Knowledge:
    """The world of a file with its answers, or the default world without a file. Raises WorldError naming the fault."""
    world = read_world(path.read_text(encoding="utf-8"), str(path)) if path else World()
    answers = _read_answers(path.parent / world.answers) if path and world.answers else Answers()
    return Knowledge(world, answers, Lexicon(world.same_words))


def read_world(text: str, name: str) -> World:
    """The world a TOML text describes; `name` is the file's, for messages."""
    try:
        return _WORLD.validate_python(tomllib.loads(text), extra="forbid")
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, fault['loc'])) or 'world'}: {fault['msg']}" for fault in error.errors())
        raise WorldError(f"{name}: {'; '.join(faults)}") from None
    except (ValueError, RecursionError) as error:  # a number with thousands of digits; nested too deeply
        raise WorldError(f"{name} is no TOML: {error}") from None


def _read_answers(path: Path) -> Answers:
    try:
        parsed = parse_question_lines(path.read_bytes())
    except OSError as error:
        raise WorldError(f"answers: can't read {path}: {error.strerror}") from None
    if parsed.faults:
        raise WorldError(f"answers: {path}: {parsed.faults[0]} ({len(parsed.faults)} faults)")
    return Answers(parsed.questions)
