"""`sim-vision`: tells what a picture's side-car text says. The text is the comment segment inside the JPEG file."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from services.simulator.domain.conversation import content_text, tag

_START, _COMMENT, _SCAN = 0xD8, 0xFE, 0xDA


def jpeg_comments(jpeg: bytes) -> list[str]:
    """The comment segments before the picture data; empty for anything that is no JPEG."""
    if jpeg[:2] != bytes((0xFF, _START)):
        return []
    found: list[str] = []
    position = 2
    while position + 4 <= len(jpeg) and jpeg[position] == 0xFF and jpeg[position + 1] != _SCAN:
        length = int.from_bytes(jpeg[position + 2 : position + 4], "big")
        if jpeg[position + 1] == _COMMENT:
            found.append(jpeg[position + 4 : position + 2 + length].decode("utf-8", "replace"))
        position += 2 + max(length, 2)
    return found


def answer_as_vision(messages: Sequence[dict[str, Any]]) -> str:
    """One sentence a picture, in order, and the words spoken; says so where a picture has no side-car text."""
    lines: list[str] = []
    for picture in _pictures(messages):
        comments = jpeg_comments(picture)
        lines.append(f"Frame {len(lines) + 1}: {' '.join(comments) if comments else 'nothing can be made out.'}")
    spoken = tag("subtitle", "\n".join(content_text(message) for message in messages)).strip()
    if spoken and spoken != "(none)":
        lines.append(f"Spoken meanwhile: {spoken}")
    return "\n".join(lines) or "No picture was sent."


def _pictures(messages: Sequence[dict[str, Any]]) -> list[bytes]:
    found: list[bytes] = []
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else []:
            url = part.get("image_url", {}).get("url", "") if isinstance(part, dict) else ""
            if isinstance(url, str) and url.startswith("data:") and ";base64," in url:
                found.append(_decoded(url.split(";base64,", 1)[1]))
    return found


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
