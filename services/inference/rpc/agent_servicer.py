"""AgentService."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc
from videotree.inference.v1 import agent_service_pb2, agent_service_pb2_grpc

from services.inference.rpc.agent_translate import answer_request, answer_response
from services.inference.use_cases.answer_questions import AnswerQuestions
from services.runtime.request_context import remaining_seconds


class AgentServicer(agent_service_pb2_grpc.AgentServiceServicer):
    """Answers questions about videos; `default_concurrency` holds for calls that set none."""

    def __init__(self, answer_questions: AnswerQuestions, default_concurrency: int) -> None:
        self._answer_questions = answer_questions
        self._default_concurrency = default_concurrency

    async def AnswerQuestions(  # noqa: N802 -- the name is the protocol's
        self,
        request: agent_service_pb2.AnswerQuestionsRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[agent_service_pb2.AnswerQuestionsResponse]:
        """See the proto."""
        seconds = remaining_seconds(context)
        deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
        wanted = answer_request(request, self._default_concurrency, deadline)
        async with aclosing(self._answer_questions(wanted)) as answers:
            async for answered in answers:
                yield answer_response(answered)
