"""What became of one question: the prediction that is stored and streamed (AGT-5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from services.inference.domain.agent_loop import StopReason
from services.inference.domain.agent_transcript import TranscriptEntry, bounded
from services.questions import Question, normalise_prediction, storable_text

_LONGEST_PREDICTION_CHARS = 2_000
_MOST_EVIDENCE = 50
_LONGEST_EVIDENCE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Spent:
    """What the model calls of one question cost; tokens are 0 where an endpoint reports none."""

    model_calls: int = 0
    cache_hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Submission:
    """How the work on a question ended, with what the model submitted, in storable text."""

    stop_reason: StopReason
    prediction: str = ""
    evidence: tuple[str, ...] = ()
    reasoning: str = ""
    error_detail: str = ""
    steps_used: int = 0


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The prediction of one question in one run, with the whole conversation."""

    run_id: str
    question: Question
    submission: Submission
    spent: Spent = field(default_factory=Spent)
    transcript: tuple[TranscriptEntry, ...] = ()

    @property
    def correct(self) -> bool:
        """Whether the prediction is the gold letter of a question that was answered."""
        finished = self.submission.stop_reason is StopReason.FINISHED
        return finished and self.submission.prediction == self.question.answer


def submission_of(args: Mapping[str, Any], question: Question, steps_used: int) -> Submission:
    """The submission in the arguments of `submit_answer`, whatever shape they have."""
    prediction = normalise_prediction(args.get("answer"), question.options)
    return Submission(
        StopReason.FINISHED,
        prediction=prediction[:_LONGEST_PREDICTION_CHARS],
        evidence=_evidence(args.get("evidence")),
        reasoning=_text(args.get("reasoning")),
        steps_used=steps_used,
    )


def failed_submission(reason: StopReason, detail: str, steps_used: int = 0) -> Submission:
    """The submission of a question that ended without an answer."""
    return Submission(reason, error_detail=bounded(detail), steps_used=steps_used)


def _evidence(value: object) -> tuple[str, ...]:
    """Node ids out of a list, one text, or nothing; each once, in order."""
    items = value if isinstance(value, list | tuple) else [value]
    texts = (storable_text(item).strip()[:_LONGEST_EVIDENCE_CHARS] for item in items if isinstance(item, str))
    return tuple(dict.fromkeys(text for text in texts if text))[:_MOST_EVIDENCE]


def _text(value: object) -> str:
    if value is None:
        return ""
    return bounded(value if isinstance(value, str) else str(value)).strip()
