"""What may stand in a row: checked once, before anything is written (QUA-13)."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence

import orjson

from services.store.domain.errors import InvalidRequest
from services.store.domain.names import row_key, run_name
from services.store.domain.tables import KEYS, NUMBER_COLUMNS

# Evidence is a product of likelihood ratios and may leave the range of a double.
_MAY_BE_INFINITE = frozenset({"e_value"})
# Enums outside the keys that have no meaning when they are not set.
_NEVER_EMPTY = ("quadrant", "how")
# Columns that must be whole JSON or empty are named `..._json`.
_JSON_SUFFIX = "_json"


def checked_rows(table: str, rows: Sequence[Mapping[str, object]], field: str) -> None:
    """Raise InvalidRequest naming the first field that cannot be stored; `field` is the path of the repeated field."""
    for index, row in enumerate(rows):
        checked_row(table, row, f"{field}[{index}]")


def checked_row(table: str, row: Mapping[str, object], field: str) -> None:
    """Raise InvalidRequest for an unusable key, NUL in a text, a number that is not finite or JSON that is none."""
    for column in KEYS[table]:
        value = row[column]
        if column in NUMBER_COLUMNS:
            _check_number_key(value, f"{field}.{column}")
        elif column == "run_id":
            run_name(str(value or ""), f"{field}.{column}")
        else:
            row_key(str(value or ""), f"{field}.{column}")
    for column in _NEVER_EMPTY:
        if row.get(column) == "":
            raise InvalidRequest(f"{field}.{column} is not set to a known value", field=f"{field}.{column}")
    for name, value in row.items():
        if isinstance(value, str):
            if "\0" in value or name.endswith(_JSON_SUFFIX):
                _check_text(name, value, field)
        elif isinstance(value, list):
            for text in value:
                _check_text(name, text, field)
        elif isinstance(value, float) and not math.isfinite(value):
            _check_infinite(name, value, field)


def checked_json_object(text: str, field: str) -> dict[str, object]:
    """Return the JSON object a text holds; raise InvalidRequest for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"{field} is not valid JSON", field=field) from error
    if not isinstance(found, dict):
        raise InvalidRequest(f"{field} must be a JSON object", field=field)
    return found


def _check_number_key(value: object, field: str) -> None:
    lowest = -1 if field.endswith(".epoch") else 0  # epoch -1 is the initial evaluation
    if not isinstance(value, int) or value < lowest:
        raise InvalidRequest(f"{field} must be a whole number of at least {lowest}", field=field)


def _check_text(name: str, value: str, field: str) -> None:
    if "\0" in value:
        raise InvalidRequest(f"{field}.{name} holds a NUL character", field=f"{field}.{name}")
    if value and name.endswith(_JSON_SUFFIX) and not _is_json(value):
        raise InvalidRequest(f"{field}.{name} is not valid JSON", field=f"{field}.{name}")


def _is_json(text: str) -> bool:
    with contextlib.suppress(orjson.JSONDecodeError):
        orjson.loads(text)
        return True
    # What the fast parser refuses may still be what Python writes: NaN and Infinity.
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _check_infinite(name: str, value: float, field: str) -> None:
    if math.isnan(value) or name not in _MAY_BE_INFINITE:
        raise InvalidRequest(f"{field}.{name} is not a finite number", field=f"{field}.{name}")
