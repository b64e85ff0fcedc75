"""A case: a question, what was answered, what the agent did, and what it could have seen."""

from dataclasses import dataclass

from services.evolver.domain.trace import TraceStep
from services.questions import Question, option_lines
from services.skills import front_matter_span
from services.video_tree import VideoTree

INFRA_REASONS = ("error", "parse_error")
NO_ANSWER = "(no answer)"


@dataclass(frozen=True, slots=True)
class Answered:
    """A prediction of a run as far as diagnosis needs it."""

    question_id: str
    prediction: str
    correct: bool
    stop_reason: str
    evidence: tuple[str, ...] = ()
    reasoning: str = ""
    steps_used: int = 0
    steps_json: str = ""

    @property
    def is_infra(self) -> bool:
        """Whether it ended in an infrastructure fault: missing data, never a wrong answer."""
        return self.stop_reason in INFRA_REASONS


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its prediction, its trace, the skill in force and the video's tree (None without a video).

    `max_steps` is the agent's step limit in that run, 0 when it isn't known.
    """

    question: Question
    answered: Answered
    trace: tuple[TraceStep, ...]
    skill_text: str
    tree: VideoTree | None = None
    max_steps: int = 0

    @property
    def options_text(self) -> str:
        """The options as lines `A. text`."""
        return option_lines(self.question.options)

    @property
    def gold_text(self) -> str:
        """The right option as `B. text`."""
        return self._option(self.question.answer)

    @property
    def prediction_text(self) -> str:
        """What was answered: `A. text` for an option, the raw text otherwise, a note for none."""
        return self._option(self.answered.prediction) or self.answered.prediction or NO_ANSWER

    @property
    def skill_body(self) -> str:
        """The skill as the judge sees it, without front matter."""
        return self.skill_text[front_matter_span(self.skill_text).end :].strip()

    @property
    def opened_nodes(self) -> tuple[str, ...]:
        """The ids of the nodes the agent opened, in order, repeats included."""
        return tuple(node for step in self.trace for node in step.opened_nodes)

    @property
    def is_letter(self) -> bool:
        """Whether the prediction is the letter of an option."""
        return len(self.answered.prediction) == 1 and self.answered.prediction in self.question.letters

    def _option(self, letter: str) -> str:
        if len(letter) != 1 or letter not in self.question.letters:
            return ""
        return f"{letter}. {self.question.options[self.question.letters.index(letter)]}"
