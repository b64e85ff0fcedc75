"""What a question asks, as far as its words tell: a direction in time, a count, a denial, a detail."""

from __future__ import annotations

import re
from dataclasses import dataclass

from services.simulator.domain.words import Lexicon

_DIRECTION = re.compile(
    r"\b(?:right |just |shortly |immediately |directly )?(after|before|following|prior to)\b(.*)$", re.I
)
_ANCHOR = re.compile(r"\b(?:when|while|as|at the moment|during)\b(.*)$", re.I)
_COUNT = re.compile(r"\bhow (?:many|often)\b|\bnumber of\b|\bcount\b", re.I)
_COUNT_EVENTS = re.compile(r"\bhow (?:many (?:different |separate )?times|often)\b|\bnumber of times\b", re.I)
_DENIAL = re.compile(r"\b(?:not|never|no|none|except|without|n't|isn't|doesn't|didn't|aren't|wasn't|weren't)\b", re.I)
_ORDER = re.compile(r"\b(?:first|last|earliest|latest)\b", re.I)


@dataclass(frozen=True, slots=True)
class Reading:
    """A question understood: its content stems, the stems that name the moment, and what kind of answer it wants.

    direction: "after", "before" or empty. order: "first", "last" or empty.
    """

    text: str
    subject: frozenset[str]
    anchor: frozenset[str]
    anchor_text: str
    direction: str
    order: str
    counts: bool
    counts_events: bool
    denies: bool


def read_question(text: str, lexicon: Lexicon) -> Reading:
    """The reading of one question."""
    direction = _DIRECTION.search(text)
    clause = direction or _ANCHOR.search(text)
    anchor_text = (clause[2] if direction and clause else clause[1]).strip(" ?.") if clause else ""
    order = _ORDER.search(text)
    return Reading(
        text=text,
        subject=lexicon.stems(text),
        anchor=lexicon.stems(anchor_text) or lexicon.stems(text),
        anchor_text=anchor_text or text,
        direction=("after" if direction[1].lower() in ("after", "following") else "before") if direction else "",
        order=("first" if order[0].lower() in ("first", "earliest") else "last") if order else "",
        counts=_COUNT.search(text) is not None,
        counts_events=_COUNT_EVENTS.search(text) is not None,
        denies=_DENIAL.search(text) is not None,
    )
