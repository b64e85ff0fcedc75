"""The reminders of the APPENDIX: adding without doubles, and writing the block (EVO-9)."""

import re
from collections.abc import Iterable, Sequence

from services.skills import block_content, holds_marker, replace_block

MAX_REMINDER_CHARS = 300
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_SAME_SHARE = 0.8


def appendix_reminders(text: str) -> list[str]:
    """Return the entries of a skill's APPENDIX in order, list markers removed, blank lines and comments left out."""
    lines = (block_content(text, "APPENDIX") or "").split("\n")
    entries = (_ITEM.sub("", line).strip() for line in lines)
    return [entry for entry in entries if entry and not entry.startswith("<!--")]


def with_reminders(text: str, reminders: Sequence[str]) -> str:
    """Return `text` with the APPENDIX holding exactly these reminders."""
    return replace_block(text, "APPENDIX", "\n".join(f"- {reminder}" for reminder in reminders))


def new_reminders(existing: Iterable[str], proposed: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return (the proposed ones that say something new, the reasons why others are left out).

    Two reminders are the same if at least 80% of the words of both together are common (Jaccard index).
    """
    known = [_words(reminder) for reminder in existing]
    added: list[str] = []
    refused: list[str] = []
    for raw in proposed:
        reminder = " ".join(_ITEM.sub("", raw).split())
        words = _words(reminder)
        fault = reminder_fault(reminder)
        if fault:
            refused.append(f"{reminder[:80]!r}: {fault}")
        elif words and not any(_same(words, other) for other in known):
            added.append(reminder)
            known.append(words)
    return added, refused


def reminder_fault(reminder: str, max_chars: int = MAX_REMINDER_CHARS) -> str:
    """Return why a line can't stand as an entry of a block, or an empty string."""
    if holds_marker(reminder) or "<!--" in reminder or "-->" in reminder:
        return "holds a marker or comment"
    if len(reminder) > max_chars:
        return f"is longer than {max_chars} characters"
    if reminder.startswith(("```", "~~~", "#", "---")):
        return "begins like a fence, heading or rule"
    return ""


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _SAME_SHARE * len(one | other)
