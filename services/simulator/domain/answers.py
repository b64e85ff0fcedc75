"""The gold answers a world knows, found by a question's text and options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from services.questions import OPTION_LETTERS, Question
from services.simulator.domain.conversation import Option


@dataclass(frozen=True, slots=True)
class Gold:
    """The right option's letter as the prompt shows it, and the question's task type."""

    letter: str
    task_type: str


class Answers:
    """Looks up gold answers; texts are compared without regard to case and white space."""

    def __init__(self, questions: Iterable[Question] = ()) -> None:
        self._known: Mapping[tuple[str, ...], tuple[str, str]] = {
            _key(question.text, question.options): (
                _normal(question.options[OPTION_LETTERS.index(question.answer)]),
                question.task_type,
            )
            for question in questions
        }

    def find(self, question: str, options: tuple[Option, ...]) -> Gold | None:
        """The gold answer, None for a question that is not known."""
        found = self._known.get(_key(question, tuple(option.text for option in options)))
        if found is None:
            return None
        text, task_type = found
        letter = next((option.letter for option in options if _normal(option.text) == text), "")
        return Gold(letter, task_type)


def _key(text: str, options: tuple[str, ...]) -> tuple[str, ...]:
    return (_normal(text), *sorted(_normal(option) for option in options))


def _normal(text: str) -> str:
    return " ".join(text.lower().split())
