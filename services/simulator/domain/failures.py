"""The failures that a prompt of evolution shows, with their diagnoses: what an edit answers, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

_CASE = re.compile(r'<case\b[^>]*?\b(?:id|question_id)="([^"]+)"[^>]*>(?:\s*<diagnosis\b([^>]*)>)?')
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_PATTERNS = {
    "missed_nodes": "what decides them stood in nodes that were not opened",
    "skill_silent": "the skill says nothing of how to weigh what was found",
    "skill_misleading": "an instruction of the skill led away from the answer",
    "budget": "the steps ran out",
    "reasoning": "the right facts were seen and misread",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """A wrong answer as it is shown: its question and the diagnosis, empty where none stands with it."""

    question_id: str
    category: str = ""
    cause: str = ""


def read_failures(text: str) -> tuple[Failure, ...]:
    """The failures of a prompt, each question once, in the order shown."""
    found: dict[str, Failure] = {}
    for question_id, diagnosis in _CASE.findall(text):
        said = dict(_ATTRIBUTE.findall(diagnosis))
        found.setdefault(question_id, Failure(question_id, said.get("category", ""), said.get("cause", "")))
    return tuple(found.values())


def answered_by(categories: Collection[str], failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """The failures that advice against these categories answers, defects first: all of them where it names none.

    A failure that is shown without a diagnosis may have any.
    """
    fitting = [failure for failure in failures if not categories or failure.category in ("", *categories)]
    return tuple(sorted(fitting, key=lambda failure: failure.cause != "defect"))


def pattern_of(answered: Sequence[Failure], shown_count: int) -> str:
    """One sentence on what the answered failures have in common, the most frequent category first."""
    counts = Counter(failure.category for failure in answered)
    parts = [f"{count} of {shown_count} failures: {_PATTERNS.get(name, name)}" for name, count in counts.most_common()]
    return "; ".join(parts) + "." if parts else ""
