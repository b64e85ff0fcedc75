"""Which file serves a task type."""

import hashlib
import re
import unicodedata
from collections.abc import Container

DEFAULT_SKILL_FILE = "default-strategy.md"


def slug(task_type: str) -> str:
    """Return the slug of a task type: `Action Reasoning` -> `action-reasoning`.

    Only `[a-z0-9-]` remains, because a slug is part of file names and run ids. A type with no such character
    (for example one in another script) gets `type-` and the first 8 hex digits of its SHA-256.
    """
    ascii_text = unicodedata.normalize("NFKD", task_type).encode("ascii", "ignore").decode("ascii")
    words = re.findall(r"[a-z0-9]+", ascii_text.lower())
    if words:
        return "-".join(words)
    return "type-" + hashlib.sha256(task_type.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def skill_file(task_type: str, files: Container[str]) -> str:
    """Return the file that serves `task_type`: its own if it is among `files`, else the default strategy."""
    own = f"{slug(task_type)}.md"
    return own if own in files else DEFAULT_SKILL_FILE
