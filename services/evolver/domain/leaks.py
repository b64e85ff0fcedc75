"""Keeping questions and their answers out of the skills.

A skill that repeats a question would let the agent remember instead of look, and would spoil every pool that holds it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

WINDOW = 8
_SHORT = 3
# Chinese and Japanese don't part words by spaces: there each character counts as one.
_UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


@dataclass(frozen=True, slots=True)
class LeakIndex:
    """What may not be repeated: 8 consecutive words of a question, and a question of any length with its answer.

    `windows` are tuples of 8 lower-case words; `pairs` are (words of a question, words of its gold answer).
    """

    windows: frozenset[tuple[str, ...]]
    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, questions: Iterable[tuple[str, str]]) -> "LeakIndex":
        """Return the index over (question text, text of its right option), of whatever pool."""
        windows: set[tuple[str, ...]] = set()
        pairs: set[tuple[str, str]] = set()
        for question, answer in questions:
            windows.update(_windows(_words(question)))
            pairs.add((_joined(question), _joined(answer)))
        return cls(frozenset(windows), tuple(sorted(pair for pair in pairs if pair[0].strip() and pair[1].strip())))

    def leak_in(self, content: str, known_text: str = "") -> str | None:
        """Return the words of `content` that leak, or None. What `known_text` says already is no new leak."""
        if not (self.windows or self.pairs):
            return None
        said: str | None = None
        for leak in self._repeated(content):
            said = _joined(known_text) if said is None else said
            if not all(f" {part} " in said for part in leak):
                return " / ".join(leak)
        return None

    def _repeated(self, content: str) -> Iterator[tuple[str, ...]]:
        words = _words(content)
        for window in _windows(words):
            if window in self.windows:
                yield (" ".join(window),)
        joined = f" {' '.join(words)} "
        for question, answer in self.pairs:
            # A question of a word or two stands in any text, so its answer must follow it.
            repeated = question in joined and answer in joined
            if repeated and (question.count(" ") > _SHORT or f"{question.rstrip()}{answer}" in joined):
                yield question.strip(), answer.strip()


NO_LEAKS = LeakIndex(frozenset(), ())


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _joined(text: str) -> str:
    return f" {' '.join(_words(text))} "


def _windows(words: list[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(words[start : start + WINDOW]) for start in range(len(words) - WINDOW + 1))
