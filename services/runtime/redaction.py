"""Takes secrets out of anything that is written for people: log lines, shown configuration, error texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

REDACTED = "[redacted]"

_SECRET_NAME = re.compile(
    r"^(authorization|proxy[-_]authorization|cookie|set[-_]cookie|.*api[-_]?key|.*password|.*passwd|.*secret"
    r"|token|(access|auth|bearer|refresh|id|api)[-_]?token)$",
    re.IGNORECASE,
)
_SECRET_TEXT = (
    re.compile(r"(?i)(?<=bearer )[^\s\"',;]+"),
    re.compile(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{8,}"),
    re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"),
)
_SHORTEST_KNOWN_SECRET = 6

_known_secrets: set[str] = set()


def remember_secret(value: str) -> None:
    """From now on `value` is replaced wherever it stands in a text (values under 6 characters would hit by chance)."""
    if len(value) >= _SHORTEST_KNOWN_SECRET:
        _known_secrets.add(value)


def is_secret_name(name: str) -> bool:
    """Whether a key of this name holds a secret, e.g. `api_key` or `Authorization` (but not `prompt_tokens`)."""
    return _SECRET_NAME.match(name) is not None


def redact_text(text: str) -> str:
    """`text` without known secrets, bearer tokens, `sk-` keys and passwords inside URLs."""
    for secret in _known_secrets:
        if secret in text:
            text = text.replace(secret, REDACTED)
    for pattern in _SECRET_TEXT:
        text = pattern.sub(REDACTED, text)
    return text


def redact(value: Any, name: str = "") -> Any:
    """`value` with every secret inside it replaced; mappings and sequences are copied, objects become text."""
    if name and is_secret_name(name) and value not in (None, ""):
        return REDACTED
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, bytes):
        return redact_text(value.decode("utf-8", "replace"))
    if isinstance(value, Mapping):
        return {key: redact(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return redact_text(str(value))
