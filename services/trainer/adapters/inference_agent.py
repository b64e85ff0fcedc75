"""The agent over the inference service's gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
from videotree.inference.v1 import agent_pb2, agent_service_pb2, agent_service_pb2_grpc

from services.trainer.adapters.calls import Caller
from services.trainer.adapters.messages import from_message
from services.trainer.domain.answering import Answer, AnswerJob

_SOLVERS = {"tree": agent_pb2.SOLVER_TREE, "direct": agent_pb2.SOLVER_DIRECT}
_SKILL_MODES = {
    "auto": agent_pb2.SKILL_MODE_AUTO,
    "manual": agent_pb2.SKILL_MODE_MANUAL,
    "none": agent_pb2.SKILL_MODE_NONE,
}


class InferenceAgent:
    """The `Agent` port."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub, self._caller = agent_service_pb2_grpc.AgentServiceStub(channel), caller

    async def answer(self, job: AnswerJob) -> AsyncIterator[Answer]:
        """Each answer after it is durable in the store, in order of completion."""
        request = agent_service_pb2.AnswerQuestionsRequest(
            workspace=job.workspace,
            dataset=job.dataset,
            question_ids=job.question_ids,
            skills=agent_pb2.SkillSet(version=job.skills_version, overrides=job.overrides),
            prompts_version=job.prompts_version,
            run_id=job.run_id,
            salt=job.salt,
            solver=_SOLVERS[job.solver],
            skill_mode=_SKILL_MODES[job.skill_mode],
            limits=agent_pb2.AgentLimits(max_steps=job.max_steps, concurrency=job.concurrency),
            resume=job.resume,
        )
        async for message in self._caller.stream(self._stub.AnswerQuestions(request)):
            yield from_message(message.answer, Answer)
