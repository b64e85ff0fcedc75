"""AnswerQuestions between its messages and the use case."""

import re
from collections.abc import Mapping
from typing import TypeVar

from videotree.inference.v1 import agent_pb2, agent_service_pb2

from services.inference.domain.agent_loop import LoopLimits
from services.inference.domain.agent_skills import SkillMode
from services.inference.domain.errors import InvalidRequest
from services.inference.use_cases.answer_ports import Answered
from services.inference.use_cases.answer_questions import AnswerRequest
from services.inference.use_cases.answer_setup import SolverKind

_Named = TypeVar("_Named", SolverKind, SkillMode)

_DEFAULT_STEPS = 20
_MOST_STEPS = 200
_MOST_CONCURRENT = 1024
_MOST_QUESTIONS = 100_000
_SKILL_FILE = re.compile(r"[a-z0-9][a-z0-9._-]*\.md")
_SOLVERS: Mapping[int, SolverKind] = {
    agent_pb2.SOLVER_UNSPECIFIED: SolverKind.TREE,
    agent_pb2.SOLVER_TREE: SolverKind.TREE,
    agent_pb2.SOLVER_DIRECT: SolverKind.DIRECT,
}
_MODES: Mapping[int, SkillMode] = {
    agent_pb2.SKILL_MODE_UNSPECIFIED: SkillMode.AUTO,
    agent_pb2.SKILL_MODE_AUTO: SkillMode.AUTO,
    agent_pb2.SKILL_MODE_MANUAL: SkillMode.MANUAL,
    agent_pb2.SKILL_MODE_NONE: SkillMode.NONE,
}


def answer_request(
    message: agent_service_pb2.AnswerQuestionsRequest, default_concurrency: int, deadline: float | None
) -> AnswerRequest:
    """The request as the use case takes it. Raises InvalidRequest naming the first field that is wrong."""
    for name in ("workspace", "dataset", "run_id", "prompts_version"):
        if not getattr(message, name):
            raise InvalidRequest(f"{name} is empty", field=name)
    skill_mode = _known(_MODES, message.skill_mode, "skill_mode")
    if skill_mode is not SkillMode.NONE and not message.skills.version:
        raise InvalidRequest("skills.version is empty", field="skills.version")
    return AnswerRequest(
        workspace=message.workspace,
        dataset=message.dataset,
        question_ids=_question_ids(message),
        run_id=message.run_id,
        skills_version=message.skills.version,
        skill_overrides=_overrides(message),
        prompt_overrides=dict(message.prompt_overrides),
        prompts_version=message.prompts_version,
        salt=message.salt if message.HasField("salt") else None,
        solver=_known(_SOLVERS, message.solver, "solver"),
        skill_mode=skill_mode,
        limits=LoopLimits(max_steps=_bounded(message, "max_steps", _DEFAULT_STEPS, _MOST_STEPS)),
        concurrency=_bounded(message, "concurrency", default_concurrency, _MOST_CONCURRENT),
        resume=message.resume,
        deadline=deadline,
    )


def answer_response(answered: Answered) -> agent_service_pb2.AnswerQuestionsResponse:
    """One answer of the stream."""
    record, submission, spent = answered.record, answered.record.submission, answered.record.spent
    answer = agent_pb2.Answer(
        question_id=record.question.question_id,
        unit_id=record.question.unit_id,
        task_type=record.question.task_type,
        prediction=submission.prediction,
        correct=record.correct,
        stop_reason=submission.stop_reason.value,
        steps_used=submission.steps_used,
        model_calls=spent.model_calls,
        cache_hits=spent.cache_hits,
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
        resumed=answered.resumed,
        error_detail=submission.error_detail,
    )
    return agent_service_pb2.AnswerQuestionsResponse(answer=answer)


def _question_ids(message: agent_service_pb2.AnswerQuestionsRequest) -> tuple[str, ...]:
    question_ids = tuple(message.question_ids)
    if not 1 <= len(question_ids) <= _MOST_QUESTIONS:
        raise InvalidRequest(f"question_ids must hold 1 to {_MOST_QUESTIONS} ids", field="question_ids")
    seen: set[str] = set()
    for index, question_id in enumerate(question_ids):
        if not question_id or question_id in seen:
            fault = f"question id {question_id!r} is empty or stands twice"
            raise InvalidRequest(fault, field=f"question_ids[{index}]")
        seen.add(question_id)
    return question_ids


def _overrides(message: agent_service_pb2.AnswerQuestionsRequest) -> dict[str, str]:
    for name in message.skills.overrides:
        if _SKILL_FILE.fullmatch(name) is None:
            raise InvalidRequest(f"{name!r} is no skill file name", field=f"skills.overrides[{name}]")
    return dict(message.skills.overrides)


def _bounded(message: agent_service_pb2.AnswerQuestionsRequest, name: str, default: int, most: int) -> int:
    value = int(getattr(message.limits, name))
    if not 0 <= value <= most:
        raise InvalidRequest(f"{name} must be 0 to {most}", field=f"limits.{name}")
    return value or default


def _known(names: Mapping[int, _Named], value: int, field: str) -> _Named:
    if value not in names:
        raise InvalidRequest(f"{field} has no value {value}", field=field)
    return names[value]
