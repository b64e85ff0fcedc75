"""Which names may become a path component or a row key.

A name that reaches the file system is checked here first, so that no request can leave its folder.
"""

from __future__ import annotations

import re

from services.store.domain.errors import InvalidName, InvalidRequest

MAX_NAME_CHARS = 200
MAX_KEY_CHARS = 512
_COMPONENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")
_LOWER_COMPONENT = re.compile(r"[a-z0-9][a-z0-9._-]*\Z")
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters and halves of surrogate pairs
_VERSION = re.compile(r"v[1-9][0-9]{0,8}\Z")


def component(value: str, field: str) -> str:
    """Return `value` if it is one harmless path component (letters, digits, `.`, `_`, `-`); else raise InvalidName."""
    if not value:
        raise InvalidName(f"{field} is empty", field=field)
    if len(value) > MAX_NAME_CHARS:
        raise InvalidName(f"{field} is longer than {MAX_NAME_CHARS} characters", field=field)
    if not _COMPONENT.match(value) or ".." in value:
        raise InvalidName(
            f"{field} {value!r} may hold only letters, digits, '.', '_' and '-', may not begin with '.' or hold '..'",
            field=field,
        )
    return value


def lower_component(value: str, field: str) -> str:
    """Return `value` if it is a component in lower case that begins with a letter or digit.

    So no two names differ by case only. Raises InvalidName.
    """
    component(value, field)
    if not _LOWER_COMPONENT.match(value):
        raise InvalidName(f"{field} {value!r} must match [a-z0-9][a-z0-9._-]*", field=field)
    return value


def version_name(value: str, field: str) -> str:
    """Return `value` if it is a version name such as `v3`; else raise InvalidName."""
    if not _VERSION.match(value):
        raise InvalidName(f"{field} {value!r} is not a version name such as 'v3'", field=field)
    return value


def run_name(value: str, field: str) -> str:
    """Return `value` if it can name a run: a row key that could never be read as a path; else raise InvalidName."""
    row_key(value, field)
    if "/" in value or "\\" in value or ".." in value or value.startswith("."):
        raise InvalidName(f"{field} {value!r} may not hold '/', a backslash or '..', nor begin with '.'", field=field)
    return value


def row_key(value: str, field: str) -> str:
    """Return `value` if it can be part of a natural key: not empty, at most 512 characters, nothing unprintable."""
    if not value or len(value) > MAX_KEY_CHARS:
        raise InvalidRequest(f"{field} must have 1 to {MAX_KEY_CHARS} characters", field=field)
    if _UNPRINTABLE.search(value):
        raise InvalidRequest(f"{field} holds a control character", field=field)
    return value
