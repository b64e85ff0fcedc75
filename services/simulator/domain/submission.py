"""Reading a model's own answer: which letter it submits, if it submits one."""

from __future__ import annotations

import json


def submitted_letter(content: str) -> str | None:
    """The letter of a `submit_answer` turn or of a direct answer; None for any other text."""
    try:
        record = json.loads(content)
        if "action" not in record:
            return str(record["answer"])
        return str(record["action"]["args"]["answer"])
    except (ValueError, KeyError, TypeError):
        return None
