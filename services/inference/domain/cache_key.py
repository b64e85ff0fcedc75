"""The key of a response (INF-5): sha256 of a canonical JSON of format version, model, whole body and salt."""

from __future__ import annotations

import hashlib
from typing import Any

from services.inference.domain.salt import salt_tag
from services.inference.domain.upstream_body import encode_json

CACHE_FORMAT_VERSION = 1
KEY_PREFIX = "llm_cache:"


def cache_key(*, kind: str, model: str, body: dict[str, Any], salt: str | None) -> str:
    """`llm_cache:{salt tag}:{sha256}` of the request that is sent.

    `kind` tells apart what is stored (`chat`, `embed`). `body` is the JSON object that goes to the upstream, images
    in it as base64 of their bytes; objects that differ only in the order of their keys give one key. The salt tag is
    for purging by salt; the salt itself is inside the hash, `None` being a value of its own.
    """
    canonical = encode_json(
        {"body": body, "format": CACHE_FORMAT_VERSION, "kind": kind, "model": model, "salt": salt}, sort_keys=True
    )
    return f"{KEY_PREFIX}{salt_tag(salt)}:{hashlib.sha256(canonical).hexdigest()}"


def salt_key_prefix(salt: str | None) -> str:
    """The beginning of every key that was made with `salt`."""
    return f"{KEY_PREFIX}{salt_tag(salt)}:"
