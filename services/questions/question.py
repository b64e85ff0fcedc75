"""The question value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

OPTION_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Question:
    """One multiple-choice question.

    `options` are texts without letters; `answer` is the gold option's letter; `video_id` is empty for a
    question that needs no video; `unit_id` names the unit it belongs to (its own id when it stands alone).
    """

    question_id: str
    video_id: str
    task_type: str
    text: str
    options: tuple[str, ...]
    answer: str
    unit_id: str

    @property
    def group_id(self) -> str:
        """What must stay in one pool: the video, or the unit where there is no video."""
        return self.video_id or self.unit_id

    @property
    def letters(self) -> str:
        """The letters of the options, in order."""
        return OPTION_LETTERS[: len(self.options)]


def option_lines(options: Sequence[str]) -> str:
    """The options as a model sees them: one line `A. text` each, line breaks inside an option turned into spaces."""
    return "\n".join(
        f"{letter}. {' '.join(text.split())}" for letter, text in zip(OPTION_LETTERS, options, strict=False)
    )
