"""JSON whose objects know the line they begin on, so that a fault can be found in the file."""

import json
import re
from collections.abc import Callable
from json.decoder import JSONObject  # type: ignore[attr-defined]  # the pure-Python parser, which knows positions
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any

_TRAILING_COMMA = re.compile(r",\s*[\]}]")


class UnreadableFile(ValueError):
    """A file that holds no JSON; the message names line and column."""


class LocatedObject(dict[str, Any]):
    """A JSON object and the line on which it begins, from 1."""

    line: int = 0


class _LocatingDecoder(json.JSONDecoder):
    def __init__(self) -> None:
        super().__init__()
        self.parse_object: Callable[..., tuple[dict[str, Any], int]] = _located
        self.scan_once = py_make_scanner(self)


def _located(at: tuple[str, int], *arguments: Any) -> tuple[LocatedObject, int]:
    value, end = JSONObject(at, *arguments)
    located = LocatedObject(value)
    located.line = at[1]
    return located, end


def read_located_json(content: bytes) -> Any:
    """The JSON value of a file, each object a LocatedObject. Raises UnreadableFile."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UnreadableFile(f"line {line}: not UTF-8: {error.reason}") from error
    try:
        value = _LocatingDecoder().decode(text)
    except json.JSONDecodeError as error:
        raise UnreadableFile(f"line {error.lineno} column {error.colno}: {_cause(text, error)}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"not valid JSON: {error}") from error
    _positions_to_lines(value, text)
    return value


def _cause(text: str, error: json.JSONDecodeError) -> str:
    before = text.rfind(",", 0, error.pos + 1)
    if before >= 0 and _TRAILING_COMMA.match(text, before):
        return "not valid JSON: a comma stands before the closing bracket; remove it"
    return f"not valid JSON: {error.msg}"


def _positions_to_lines(value: Any, text: str) -> None:
    """Objects hold offsets until now; counting all lines in one pass keeps this linear."""
    objects: list[LocatedObject] = []
    open_values = [value]
    while open_values:
        current = open_values.pop()
        if isinstance(current, LocatedObject):
            objects.append(current)
            open_values.extend(current.values())
        elif isinstance(current, list):
            open_values.extend(current)
    line, counted = 1, 0
    for located in sorted(objects, key=lambda found: found.line):
        line += text.count("\n", counted, located.line)
        counted = located.line
        located.line = line
