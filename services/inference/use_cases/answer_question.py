"""One question from start to record, within its own failure boundary (AGT-5)."""

import asyncio

import structlog

from services.inference.domain.agent_errors import RecordRefused
from services.inference.domain.agent_loop import StopReason
from services.inference.domain.agent_transcript import TranscriptEntry
from services.inference.domain.chat import CallOrigin
from services.inference.domain.prediction import AnswerRecord, Submission, failed_submission
from services.inference.use_cases.answer_question_direct import solve_direct
from services.inference.use_cases.answer_question_tree import solve_by_tree
from services.inference.use_cases.answer_setup import AgentServices, AgentSetup, SolverKind
from services.inference.use_cases.metered_model import MeteredModel
from services.questions import Question

_log = structlog.get_logger(__name__)


async def answer_question(
    services: AgentServices, setup: AgentSetup, workspace: str, question: Question
) -> AnswerRecord:
    """Answers a question and returns the record once it is durable.

    Whatever goes wrong with this question, storing its record included, makes it `error`. Only a store that can't
    take even that plain record raises (StoreUnavailable, NotFound, RecordRefused).
    """
    origin = CallOrigin(workspace, setup.run_id, question.question_id)
    model = MeteredModel(services.model, setup.salt, setup.deadline, origin, services.patience)
    transcript: list[TranscriptEntry] = []
    submission = await _solve(services, setup, model, question, transcript)
    record = AnswerRecord(setup.run_id, question, submission, model.spent, tuple(transcript))
    try:
        await services.log.append(workspace, record)
    except (RecordRefused, ValueError, TypeError) as error:
        _log.warning("record_not_storable", question_id=question.question_id, error=str(error))
        record = _plain_failure(setup.run_id, question, model, f"the record could not be stored: {error}")
        await services.log.append(workspace, record)
    return record


async def _solve(
    services: AgentServices,
    setup: AgentSetup,
    model: MeteredModel,
    question: Question,
    transcript: list[TranscriptEntry],
) -> Submission:
    solve = solve_direct if setup.solver is SolverKind.DIRECT else solve_by_tree
    try:
        return await solve(services, setup, model, question, transcript)
    except asyncio.CancelledError:
        if _is_cancelled():
            raise
        return failed_submission(StopReason.ERROR, "a call it waited for was cancelled", _steps_used(transcript))
    except Exception as error:  # the question's failure boundary: one bad question never ends the batch
        _log.warning("question_failed", question_id=question.question_id, error=f"{type(error).__name__}: {error}")
        return failed_submission(StopReason.ERROR, f"{type(error).__name__}: {error}", _steps_used(transcript))


def _is_cancelled() -> bool:
    """Whether this very task is asked to end, and not just something it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _steps_used(transcript: list[TranscriptEntry]) -> int:
    return sum(entry.is_step for entry in transcript)


def _plain_failure(run_id: str, question: Question, model: MeteredModel, detail: str) -> AnswerRecord:
    return AnswerRecord(run_id, question, failed_submission(StopReason.ERROR, detail), model.spent)
