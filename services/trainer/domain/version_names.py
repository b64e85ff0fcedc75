"""The name the store will give to the next version. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def upcoming_versions(existing: Iterable[str], count: int) -> list[str]:
    """Names of the next `count` versions after `existing`: v1, v2, ... are numbered without gaps at the end."""
    last = max((int(name.removeprefix("v")) for name in existing), default=0)
    return [f"v{last + offset}" for offset in range(1, count + 1)]
