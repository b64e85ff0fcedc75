"""Options and answers as question files write them: with or without letters, answers as letters or as texts."""

import re
from collections.abc import Sequence

from services.questions import OPTION_LETTERS

_LETTERED = re.compile(r"\s*\(?([A-Za-z])\s*[.):]\s*(.*)", re.DOTALL)
_ANSWER_LETTER = re.compile(r"\(?([A-Za-z])\s*[.):]?\)?")


class UnclearAnswer(ValueError):
    """An answer that doesn't name exactly one option."""


def without_letters(options: Sequence[str]) -> list[str]:
    """The option texts, without their letters if every option carries the letter of its own place.

    `["A. red", "B. blue"]` loses its letters; `["A. Lincoln", "J. Adams"]` keeps its initials.
    """
    matches = [_LETTERED.fullmatch(option) for option in options]
    own = [match[2] for letter, match in zip(OPTION_LETTERS, matches, strict=False) if match and match[1] == letter]
    return own if options and len(own) == len(options) and all(text.strip() for text in own) else list(options)


def answer_letter(answer: str, options: Sequence[str]) -> str:
    """The letter of the gold option, given as a letter (`C`, `c.`, `(C)`, `C. text`) or as an option's text.

    A letter wins over an option whose text is another letter. Raises UnclearAnswer where the text is that of several
    options or of none, or where a letter and the text after it disagree.
    """
    letters = OPTION_LETTERS[: len(options)]
    by_text = [letter for letter, option in zip(letters, options, strict=True) if option.strip() == answer.strip()]
    bare = _ANSWER_LETTER.fullmatch(answer.strip())
    if bare and bare[1].upper() in letters:
        return bare[1].upper()
    if len(by_text) == 1:
        return by_text[0]
    if by_text:
        raise UnclearAnswer(f"answer {answer!r} is the text of options {', '.join(by_text)}; give its letter")
    return _letter_with_text(answer, options)


def _letter_with_text(answer: str, options: Sequence[str]) -> str:
    match = _LETTERED.fullmatch(answer)
    if match and match[1].upper() in OPTION_LETTERS[: len(options)]:
        letter = match[1].upper()
        if options[OPTION_LETTERS.index(letter)].strip() == match[2].strip():
            return letter
    raise UnclearAnswer(f"answer {answer!r} is no option")
