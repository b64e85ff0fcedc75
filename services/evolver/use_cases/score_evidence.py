"""Rating the evidence given for the predictions of a run (the soft score of TRN-8)."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from services.evolver.domain.case import Answered, Case
from services.evolver.domain.errors import ModelUnavailable
from services.evolver.domain.evidence import evidence_values, quality_without_judge
from services.evolver.use_cases.ask_model import AskModel
from services.evolver.use_cases.load_cases import load_answers
from services.evolver.use_cases.ports import ModelRole, Origin, RunArchive
from services.questions import Question

# Scores are yielded in order; so many more than the workers wait for a slow one to be passed on.
_AHEAD = 4


@dataclass(frozen=True, slots=True)
class EvidenceScore:
    """The quality in [0, 1] of the evidence for one answer; None when it wasn't rated, with the reason in `why`."""

    question_id: str
    score: float | None
    why: str


class ScoreEvidence:
    """Has the judge rate evidence, right and wrong answers alike."""

    def __init__(self, archive: RunArchive, ask: AskModel, workers: int, judging: bool) -> None:
        self._archive = archive
        self._ask = ask
        self._workers = workers
        self._judging = judging

    async def scores(
        self, workspace: str, run_id: str, dataset: str, question_ids: Sequence[str]
    ) -> AsyncGenerator[EvidenceScore, None]:
        """Yield one score a prediction in order of question id. INFRA, a failed judge, or judging off: no score.

        Raises UnknownRun, StoreUnavailable.
        """
        answers, questions = await load_answers(self._archive, workspace, run_id, dataset, question_ids)
        origin = Origin(workspace, run_id)
        pending: deque[asyncio.Task[EvidenceScore]] = deque()
        try:
            for answer in answers:
                question = questions[answer.question_id]
                pending.append(asyncio.create_task(self._score(answer, question, origin)))
                if len(pending) == self._workers * _AHEAD:
                    yield await pending.popleft()
            while pending:
                yield await pending.popleft()
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def _score(self, answer: Answered, question: Question, origin: Origin) -> EvidenceScore:
        if not self._judging:
            return EvidenceScore(question.question_id, None, "judging is off")
        if answer.is_infra:
            return EvidenceScore(question.question_id, None, "infrastructure fault, missing data")
        case = Case(question, answer, (), "", await self._archive.tree(question.video_id))
        known = quality_without_judge(case)
        if known is not None:
            return EvidenceScore(question.question_id, *known)
        try:
            judged = await self._ask.ask(
                "diagnose.score",
                evidence_values(case),
                ModelRole.JUDGE,
                origin,
                lambda found: (float(found["quality"]), str(found["why"])),
            )
        except ModelUnavailable as error:
            return EvidenceScore(question.question_id, None, f"the judge could not be asked: {error}")
        if judged.value is None:
            return EvidenceScore(question.question_id, None, f"unreadable judgement: {'; '.join(judged.faults[:3])}")
        return EvidenceScore(question.question_id, *judged.value)
