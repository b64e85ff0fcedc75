"""Text as bags of stems: the only notion of meaning the simulated models have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_WORD = re.compile(r"[a-z0-9]+")
_STOP_WORDS = frozenset(
    _WORD.findall("""
    a an and any are as at be because been being both but by can could did do does doing during each for from
    had has have he her hers him his i if in into is it its itself just may might more most of off on once only
    onto or other our out over own same she should so some such than that the their them then there these they
    this those through to too under until up very was we were what when where which while who whom why will with
    would you your video how many s t shown seen appears appear show shows following option options
    """)
)
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        _WORD.findall("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen")
    )
}
_VOWELS = frozenset("aeiouy")
_TEXTS_KEPT = 8_192


def words(text: str) -> list[str]:
    """Lower-case words in the order of the text."""
    return _WORD.findall(text.lower())


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """A crude English stem: plural, past and -ing endings removed, a doubled last consonant made single."""
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS[word]
    if len(word) <= 3 or word[0].isdigit():
        return word
    for ending in ("ingly", "edly", "ing", "ies", "ied", "ed", "es", "ly", "s"):
        if word.endswith(ending) and not word.endswith("ss"):
            rest = word[: -len(ending)]
            if len(rest) < 3 or not _VOWELS & set(rest):
                continue
            if ending in ("ies", "ied"):
                return rest + "y"
            return _without_ending(rest)
    return word[:-1] if word.endswith("e") else word


def _without_ending(rest: str) -> str:
    if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "sl":
        return rest[:-1]
    return rest[:-1] if rest.endswith("e") else rest


@lru_cache(maxsize=_TEXTS_KEPT)
def stems(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    return frozenset(stem(word) for word in words(text) if word not in _STOP_WORDS)


class Lexicon:
    """Stems of texts in which words declared the same (`child`, `kid`) count as one."""

    __slots__ = ("_cache", "_canonical")

    def __init__(self, same_words: Iterable[Iterable[str]] = ()) -> None:
        self._canonical: dict[str, str] = {}
        for group in same_words:
            members = [stem(word.lower()) for word in group]
            self._canonical.update(dict.fromkeys(members, members[0]))
        self._cache: dict[str, frozenset[str]] = {}

    def stems(self, text: str) -> frozenset[str]:
        """The stems of the text's words that carry meaning, each replaced by the first of its group."""
        if not self._canonical:
            return stems(text)
        found = self._cache.get(text)
        if found is None:
            if len(self._cache) >= _TEXTS_KEPT:
                self._cache.clear()
            found = frozenset(self._canonical.get(one, one) for one in stems(text))
            self._cache[text] = found
        return found


def coverage(wanted: frozenset[str], text: frozenset[str]) -> float:
    """Share of the wanted stems that the text holds, in [0, 1]; 0 where nothing is wanted."""
    return len(wanted & text) / len(wanted) if wanted else 0.0


def number_in(text: str) -> int | None:
    """The first number of a short text, written in digits or as a word up to fifteen; None where there is none."""
    for word in words(text):
        if word.isdigit():
            return int(word)
        if word in _NUMBER_WORDS:
            return int(_NUMBER_WORDS[word])
    return None
