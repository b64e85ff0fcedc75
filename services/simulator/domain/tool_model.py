"""`sim-tool`: condenses and summarises by extraction; it never writes a sentence that was not there."""

from __future__ import annotations

import re

from services.simulator.domain.conversation import tag
from services.simulator.domain.words import Lexicon, coverage

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
NOTHING = "Nothing here bears on the question."
KEPT_SHARE = 0.5


def answer_as_tool(prompt: str, lexicon: Lexicon) -> str:
    """What the prompt's tags ask for: an extract, a verified extract, or a summary."""
    if tag("descriptions", prompt):
        limit = tag("max_chars", prompt).strip()
        return summary(tag("descriptions", prompt), int(limit) if limit.isdigit() else 400, lexicon)
    text, question = tag("text", prompt), tag("question", prompt)
    if tag("extract", prompt):
        return verified(text, tag("extract", prompt))
    return extract(text, question, lexicon)


def extract(text: str, question: str, lexicon: Lexicon) -> str:
    """The sentences that share most words with the question, in their order, at most half of the text.

    The closest one is kept however long it is; of equally close ones the earlier come first.
    """
    sentences = _sentences(text)
    if not sentences:
        return NOTHING
    wanted = lexicon.stems(question)
    ranks = sorted(range(len(sentences)), key=lambda i: (-coverage(wanted, lexicon.stems(sentences[i])), i))
    kept = {ranks[0]}
    room = len(text) * KEPT_SHARE - len(sentences[ranks[0]])
    for index in ranks[1:]:
        if len(sentences[index]) <= room:
            kept.add(index)
            room -= len(sentences[index]) + 1
    return " ".join(sentences[index] for index in sorted(kept))


def verified(text: str, extracted: str) -> str:
    """The extract without the sentences that the text does not hold."""
    source = " ".join(text.split())
    return " ".join(sentence for sentence in _sentences(extracted) if " ".join(sentence.split()) in source) or NOTHING


def summary(descriptions: str, max_chars: int, lexicon: Lexicon) -> str:
    """Sentences in the order of time that each bring at least a third of new words, as many as fit."""
    known: frozenset[str] = frozenset()
    kept: list[str] = []
    used = 0
    for sentence in _sentences(descriptions):
        stems = lexicon.stems(sentence)
        fresh = len(stems - known) / len(stems) if stems else 0.0
        if fresh < 1 / 3 or used + len(sentence) + 1 > max_chars:
            continue
        kept.append(sentence)
        used += len(sentence) + 1
        known |= stems
    return " ".join(kept) or descriptions[:max_chars].strip()


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]
