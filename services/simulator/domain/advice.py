"""Which search behaviours a skill's text asks for, and which of them one conversation really shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from services.simulator.domain.draws import Draws
from services.simulator.domain.world import Advice, AgentWorld, Need

_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n\s*\n|\n(?=\s*(?:[-*#]|\d+\.))")
_DENIAL = re.compile(r"\b(?:not|never|avoid|no need to|instead of|rather than|don't)\b", re.IGNORECASE)


@lru_cache(maxsize=2048)
def advised(text: str, advice: tuple[Advice, ...]) -> frozenset[str]:
    """The behaviours that the text advises.

    A phrase counts within one sentence, unless a denial ("never", "do not") stands before it in that sentence.
    """
    sentences = _sentences(text)
    return frozenset(entry.behaviour for entry in advice if any(_advises(one, entry) for one in sentences))


def advising_sentence(text: str, behaviours: frozenset[str], advice: tuple[Advice, ...]) -> str:
    """The first sentence of the text that advises one of the behaviours; empty where none does."""
    entries = [entry for entry in advice if entry.behaviour in behaviours]
    return next((one for one in _sentences(text) if any(_advises(one, entry) for entry in entries)), "")


def _sentences(text: str) -> list[str]:
    return [" ".join(sentence.split()) for sentence in _SENTENCE.split(text)]


def _advises(sentence: str, entry: Advice) -> bool:
    found = (re.search(pattern, sentence, re.IGNORECASE) for pattern in entry.phrases)
    return any(hit is not None and _DENIAL.search(sentence[: hit.start()]) is None for hit in found)


@lru_cache(maxsize=8192)
def needed(question: str, needs: tuple[Need, ...]) -> tuple[str, ...]:
    """The behaviours a question needs, by the first pattern of the world that matches it; none where none does."""
    for need in needs:
        if re.search(need.pattern, question, re.IGNORECASE):
            return need.behaviours
    return ()


def misleading(advice: Sequence[Advice]) -> frozenset[str]:
    """The behaviours whose advice makes the agent worse."""
    return frozenset(entry.behaviour for entry in advice if entry.misleads)


def active(
    texts: Sequence[str],
    question: str,
    advice: tuple[Advice, ...],
    needs: tuple[Need, ...],
    world: AgentWorld,
    draws: Draws,
) -> frozenset[str]:
    """The behaviours of one conversation: advised ones with the follow rate, helpful others now and then."""
    asked_for: frozenset[str] = frozenset().union(*(advised(text, advice) for text in texts))
    shown = {name for name in asked_for if draws.happens(f"follow/{name}", world.follow_rate)}
    for name in needed(question, needs):
        if name not in asked_for and draws.happens(f"spontaneous/{name}", world.spontaneous_rate):
            shown.add(name)
    return frozenset(shown)
