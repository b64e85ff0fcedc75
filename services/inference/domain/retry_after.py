"""The `Retry-After` header (RFC 9110, section 10.2.3), read without trusting it."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"\+?\d+(\.\d*)?|\.\d+", re.ASCII)


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """Seconds to wait from `now` (an aware time), or `None` where the header is absent or makes no sense.

    Whole or decimal seconds and HTTP dates are read; a date in the past is 0. Negative, infinite, not-a-number and
    unreadable values are ignored.
    """
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        seconds = float(text)
        return seconds if math.isfinite(seconds) else None
    return _seconds_until(text, now)


def _seconds_until(text: str, now: datetime) -> float | None:
    try:
        when = parsedate_to_datetime(text)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        return max(0.0, (when - now).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
