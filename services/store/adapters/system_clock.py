"""The present time as the store writes it."""

from __future__ import annotations

import datetime


def utc_now() -> str:
    """Return the present time as ISO 8601 UTC text with microseconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
