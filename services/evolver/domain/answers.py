"""Reading a model's answer: one unambiguous JSON object, nothing guessed (EVO-2)."""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from services.evolver.domain.errors import AnswerFault

_THINKING = re.compile(r"\A\s*<think>.*</think>", re.DOTALL)
_OBJECT_START = re.compile(r"""\{\s*["'}]""")
_AROUND = 200
_FENCE_LINES = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)


def read_object(text: str, finish_reason: str) -> dict[str, Any]:
    """Return the one JSON object of an answer; a leading <think> part, code fences and prose around it are stripped.

    Raises AnswerFault when the answer was cut off (`finish_reason` is `length`), or holds no object, a broken one, one
    inside a list, or several that differ. An object with a key twice, NaN or Infinity is broken. The same object
    several times is one.
    """
    if finish_reason == "length":
        raise AnswerFault(("the answer was cut off (finish reason: length)",))
    found = list(_objects(_THINKING.sub("", text, count=1)))
    if not found:
        raise AnswerFault(("the answer holds no JSON object",))
    if any(other != found[0] for other in found[1:]):
        raise AnswerFault((f"the answer holds {len(found)} JSON objects that differ, there must be one",))
    return found[0]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the outermost objects. A broken one raises: what is inside it must not pass for the answer."""
    position = text.find("{")
    while position >= 0:
        end = None if _OBJECT_START.match(text, position) else _end_of_braces(text, position)
        if end is None:
            value, end = _decode(text, position)
            _refuse_inside_list(text, position, end)
            yield value
        position = text.find("{", end)


def _decode(text: str, position: int) -> tuple[dict[str, Any], int]:
    try:
        value, end = _DECODER.raw_decode(text, position)
    except RecursionError as error:
        raise AnswerFault(("the JSON object is nested too deeply",)) from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise AnswerFault((f"the JSON object is broken: {error.msg} at {place}",)) from error
    except ValueError as error:
        raise AnswerFault((f"the JSON object is broken: {error}",)) from error
    return value, end


def _end_of_braces(text: str, position: int) -> int | None:
    """Return where the brace at `position` is closed, counting braces outside double quotes, or None."""
    depth, quoted, index = 0, False, position
    while index < len(text):
        character = text[index]
        if quoted and character == "\\":
            index += 1
        elif character == '"':
            quoted = not quoted
        elif not quoted and character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                return index + 1
        index += 1
    return None


def _refuse_inside_list(text: str, start: int, end: int) -> None:
    before = _FENCE_LINES.sub("", text[max(0, start - _AROUND) : start]).rstrip()
    after = _FENCE_LINES.sub("", text[end : end + _AROUND]).lstrip()
    if before.endswith("[") and after.startswith(("]", ",")):
        raise AnswerFault(("the JSON object stands inside a list, the answer must be the object itself",))


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(object_pairs_hook=_without_doubles, parse_constant=_no_constant)
