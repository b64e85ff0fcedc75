"""Results on standard output: a table for people, or pure JSON."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from services.runtime.redaction import redact_text

_WIDTH_IN_FILES = 240


def print_json(value: Any) -> None:
    """`value` (dataclasses, paths and dates too) as indented JSON."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    sys.stdout.write(redact_text(orjson.dumps(value, default=_plain, option=options).decode()) + "\n")


def print_rows(rows: Sequence[Mapping[str, Any]], *, as_json: bool, empty: str) -> None:
    """Rows of equal keys as a table, or as a JSON array; `empty` is said when there are none."""
    if as_json:
        print_json(rows)
        return
    if not rows:
        print_line(empty)
        return
    table = Table(*rows[0], box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(shown(value) for value in row.values()))
    people = Console(highlight=False)
    if not people.is_terminal:
        people.width = _WIDTH_IN_FILES
    people.print(table)


def print_line(text: str) -> None:
    """One line for people on standard output."""
    sys.stdout.write(redact_text(text) + "\n")


def say(value: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """`value` as JSON, or `text` for people."""
    if as_json:
        print_json(value)
    else:
        print_line(text)


def shown(value: Any) -> str:
    """A value as a table shows it; what is missing reads "not recorded", never 0."""
    if value is None:
        return "not recorded"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, (list, tuple)):
        return ", ".join(str(each) for each in value)
    return str(value)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)
