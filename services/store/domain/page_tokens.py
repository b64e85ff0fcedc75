"""Opaque page tokens: where a list goes on, bound to the query that made it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from services.store.domain.errors import InvalidPageToken, InvalidRequest
from services.store.domain.fingerprints import canonical_json

KeyPart: TypeAlias = str | int
DEFAULT_PAGE_SIZE = 100
MAX_PAGE_SIZE = 1000


def checked_page_size(requested: int, default: int = DEFAULT_PAGE_SIZE, most: int = MAX_PAGE_SIZE) -> int:
    """Return the page size to use: the default for 0, never above `most`; raise InvalidRequest for a negative one."""
    if requested < 0:
        raise InvalidRequest("page_size is negative", field="page_size")
    return min(requested or default, most)


def query_mark(kind: str, filters: Mapping[str, object]) -> str:
    """Return a short hash of a query, so that a token of one query is refused by another."""
    return hashlib.sha256(canonical_json([kind, dict(filters)]).encode()).hexdigest()[:12]


def encode(mark: str, after: Sequence[KeyPart]) -> str:
    """Return the token of the page that follows the row with key `after`."""
    return base64.urlsafe_b64encode(json.dumps([mark, *after]).encode()).decode().rstrip("=")


def decode(mark: str, token: str, key_types: Sequence[type]) -> tuple[KeyPart, ...] | None:
    """Return the key after which to go on, None for an empty token; raise InvalidPageToken for a foreign one."""
    if not token:
        return None
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        found = json.loads(raw)
    except (binascii.Error, ValueError) as error:
        raise InvalidPageToken from error
    if not isinstance(found, list) or len(found) != len(key_types) + 1 or found[0] != mark:
        raise InvalidPageToken
    if any(type(part) is not wanted for part, wanted in zip(found[1:], key_types, strict=True)):
        raise InvalidPageToken
    return tuple(found[1:])
