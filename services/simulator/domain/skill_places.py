"""Where in a text the optimizer can put something: lines that occur once, outside protected parts."""

from __future__ import annotations

import re

from services.skills import front_matter_span, normalise_newlines

_MARKER = re.compile(r"^<!-- (?:APPENDIX|MOMENTUM)_START -->", re.MULTILINE)
_ITEM = re.compile(r"^(?:[-*]|\d+\.)\s+\S")


def free_body(text: str) -> str:
    """The text after the front matter and before the first protected block."""
    normal = normalise_newlines(text)
    body = normal[front_matter_span(normal).end :]
    marker = _MARKER.search(body)
    return body[: marker.start()] if marker else body


def list_items(text: str, frozen: str = "") -> list[str]:
    """The list items of the free body that occur exactly once in the whole text and not in the frozen part."""
    lines = [line for line in free_body(text).splitlines() if _ITEM.match(line)]
    return [line for line in lines if text.count(line) == 1 and line not in frozen]
