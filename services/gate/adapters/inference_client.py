"""The inference service, one AnswerQuestions call an arm of a unit."""

from __future__ import annotations

import grpc
from videotree.inference.v1 import agent_pb2, agent_service_pb2, agent_service_pb2_grpc

from services.gate.adapters.grpc_failure import neighbour_failure
from services.gate.domain.errors import NeighbourFailed
from services.gate.domain.round_events import Usage
from services.gate.domain.unit_result import QuestionResult
from services.gate.use_cases.ports import ArmAnswers, ArmCall

STOP_REASONS = frozenset({"finished", "budget_exceeded", "parse_error", "error"})
"""What may be counted, or excluded, with certainty; any other is refused rather than taken for an answer."""

_SOLVERS = {"tree": agent_pb2.SOLVER_TREE, "direct": agent_pb2.SOLVER_DIRECT}
_SKILL_MODES = {
    "auto": agent_pb2.SKILL_MODE_AUTO,
    "manual": agent_pb2.SKILL_MODE_MANUAL,
    "none": agent_pb2.SKILL_MODE_NONE,
}


class GrpcInference:
    """The `Inference` port over a channel, which its owner closes."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._agent = agent_service_pb2_grpc.AgentServiceStub(channel)

    async def answer(self, call: ArmCall) -> ArmAnswers:
        """See `Inference.answer`."""
        try:
            answers = [response.answer async for response in self._agent.AnswerQuestions(_request(call))]
        except grpc.aio.AioRpcError as error:
            raise neighbour_failure(error, "inference AnswerQuestions") from error
        _require_complete(call, answers)
        return ArmAnswers(tuple(map(_result, answers)), _usage(answers))


def _request(call: ArmCall) -> agent_service_pb2.AnswerQuestionsRequest:
    return agent_service_pb2.AnswerQuestionsRequest(
        workspace=call.workspace,
        dataset=call.dataset,
        question_ids=call.question_ids,
        skills=agent_pb2.SkillSet(version=call.skills_version, overrides=call.overrides),
        prompts_version=call.prompts_version,
        prompt_overrides=call.prompt_overrides,
        run_id=call.run_id,
        salt=call.salt,
        solver=_SOLVERS[call.agent.solver],
        skill_mode=_SKILL_MODES[call.agent.skill_mode],
        limits=agent_pb2.AgentLimits(max_steps=call.agent.max_steps, concurrency=call.concurrency),
    )


def _require_complete(call: ArmCall, answers: list[agent_pb2.Answer]) -> None:
    answered = sorted(answer.question_id for answer in answers)
    if answered != sorted(call.question_ids):
        message = f"inference AnswerQuestions: asked for {', '.join(call.question_ids)}, got {', '.join(answered)}"
        raise NeighbourFailed(message, status="DATA_LOSS")


def _result(answer: agent_pb2.Answer) -> QuestionResult:
    if answer.stop_reason not in STOP_REASONS:
        message = f"inference AnswerQuestions: unknown stop reason {answer.stop_reason!r} of {answer.question_id!r}"
        raise NeighbourFailed(message, status="DATA_LOSS")
    return QuestionResult(answer.question_id, answer.correct, answer.stop_reason)


def _usage(answers: list[agent_pb2.Answer]) -> Usage:
    return Usage(
        sum(answer.model_calls for answer in answers),
        sum(answer.cache_hits for answer in answers),
        sum(answer.prompt_tokens + answer.completion_tokens for answer in answers),
    )
