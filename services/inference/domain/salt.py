"""What a salt does besides being part of the cache key (INF-6)."""

from __future__ import annotations

import hashlib


def seed_of_salt(salt: str) -> int:
    """The `seed` for endpoints that honour it: the first four bytes of sha256(salt), as an unsigned number."""
    return int.from_bytes(hashlib.sha256(salt.encode()).digest()[:4], "big")


def salt_tag(salt: str | None) -> str:
    """A short name of the salt that is safe inside a cache key: `none`, or 16 hex digits of its sha256."""
    return "none" if salt is None else hashlib.sha256(salt.encode()).hexdigest()[:16]
