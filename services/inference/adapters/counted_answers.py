"""Prometheus metrics of answered questions, counted when they are durable."""

from collections.abc import Collection

from services.inference.domain.prediction import AnswerRecord
from services.inference.use_cases.answer_ports import AnswerLog
from services.questions import Question
from services.runtime.metrics import counter, histogram

_QUESTIONS = counter("videotree_questions", "Questions answered and stored", ["stop_reason"])
_STEPS = histogram("videotree_question_steps", "Tool calls of a question", buckets=(0, 1, 2, 3, 5, 8, 12, 20, 50, 200))


class CountedAnswers:
    """An AnswerLog that counts what another one has stored."""

    def __init__(self, log: AnswerLog) -> None:
        self._log = log

    async def append(self, workspace: str, record: AnswerRecord) -> None:
        """See AnswerLog."""
        await self._log.append(workspace, record)
        _QUESTIONS.labels(record.submission.stop_reason.value).inc()
        _STEPS.observe(record.submission.steps_used)

    async def answered(self, workspace: str, run_id: str, questions: Collection[Question]) -> list[AnswerRecord]:
        """See AnswerLog."""
        return await self._log.answered(workspace, run_id, questions)
