"""Reading whatever a model submitted as its answer (AGT-5)."""

import json
import re
import unicodedata
from collections.abc import Sequence

from services.questions.question import OPTION_LETTERS

_LETTERED = re.compile(r"\(?([A-Za-z])[.):\]]*(?:\s+(?P<spaced>.*)|(?<=[.):])(?P<tight>.+))?", re.DOTALL)
_MARKED = re.compile(r"\(?[A-Za-z][.):]")
_FINAL_PUNCTUATION = ".,;:!?…。！？"
_MAX_NESTING = 8


def normalise_prediction(value: object, options: Sequence[str]) -> str:
    """The submitted answer as text: an option's letter where it names exactly one option, else the text itself.

    Accepts text, numbers, null, lists of one and objects with an `answer`. `b. because` and `(B)` are letter B;
    a text that equals exactly one option (case, spaces and final punctuation aside) is that option's letter.
    A bare number is text, never an index, since models count from 0 as well as from 1. A letter next to another
    option's text contradicts itself and stays text. Never raises for a JSON value.
    """
    text = storable_text(_as_text(value)).strip()
    return _bare_letter(text, options) or _matching_letter(text, options) or _leading_letter(text, options) or text


def _as_text(value: object) -> str:
    for _ in range(_MAX_NESTING):
        if isinstance(value, list | tuple) and len(value) == 1:
            value = value[0]
        elif isinstance(value, dict) and "answer" in value:
            value = value["answer"]
        else:
            break
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def storable_text(text: str) -> str:
    """The text without what databases and wire formats refuse: NUL goes, half a surrogate pair becomes `?`."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def _bare_letter(text: str, options: Sequence[str]) -> str:
    letter = text.strip("()[]. :").upper()
    return letter if len(letter) == 1 and letter in OPTION_LETTERS[: len(options)] else ""


def _matching_letters(text: str, options: Sequence[str]) -> str:
    wanted = _comparable(text)
    if not wanted:
        return ""
    return "".join(
        letter for letter, option in zip(OPTION_LETTERS, options, strict=False) if _comparable(option) == wanted
    )


def _matching_letter(text: str, options: Sequence[str]) -> str:
    letters = _matching_letters(text, options)
    return letters if len(letters) == 1 else ""


def _leading_letter(text: str, options: Sequence[str]) -> str:
    match = _LETTERED.fullmatch(text)
    if match is None or _MARKED.match(text) is None:
        return ""
    letter = match.group(1).upper()
    if letter not in OPTION_LETTERS[: len(options)]:
        return ""
    named = _matching_letters(match.group("spaced") or match.group("tight") or "", options)
    if match.group("tight") is not None:
        return letter if letter in named else ""
    return letter if not named or letter in named else ""


def _comparable(text: str) -> str:
    words = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return words.rstrip(_FINAL_PUNCTUATION + " ")
