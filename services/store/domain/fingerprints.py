"""Canonical JSON and content fingerprints."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from services.store.domain.errors import FingerprintMismatch


def canonical_json(value: object) -> str:
    """Return `value` as JSON with sorted keys and no spaces; NaN and infinities are refused with ValueError."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def readable_json(value: object) -> str:
    """Return `value` as indented JSON with sorted keys, ending in a newline: the same bytes for the same value."""
    return json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def sha256_hex(data: bytes | str) -> str:
    """Return the SHA-256 of bytes, or of a text's UTF-8 bytes, in hex."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def require_same(stored: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raise FingerprintMismatch naming each key on which the two differ; a key that only one side has differs."""
    differing = [
        (key, stored.get(key, "not recorded"), given.get(key, "not given"))
        for key in sorted({*stored, *given})
        if stored.get(key) != given.get(key)
    ]
    if differing:
        raise FingerprintMismatch(differing)
