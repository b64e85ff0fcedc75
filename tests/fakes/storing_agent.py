"""An inference service whose answers follow a rule; like the real one, it stores each before it streams it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import grpc
from videotree.inference.v1 import agent_pb2, agent_service_pb2, agent_service_pb2_grpc
from videotree.store.v1 import prediction_pb2, run_service_pb2, version_pb2, version_service_pb2

from services.questions import Question
from services.runtime.serving import ServiceParts
from services.skills import skill_file
from tests.fakes.store_client import StoreClient

Rule = Callable[[str, Question, str], bool]
"""Whether (run id, question, text of the skill that serves it) is answered right."""


class StoringAgent(agent_service_pb2_grpc.AgentServiceServicer):
    """Answers in the reverse of the order asked, and takes from the store what a resumed run has already."""

    def __init__(self, store: StoreClient, questions: Mapping[str, Question], rule: Rule) -> None:
        self._store = store
        self._questions = questions
        self._rule = rule

    async def AnswerQuestions(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - the contract's name
        texts = {**await self._texts(request.workspace, request.skills.version), **request.skills.overrides}
        stored = await self._stored(request.workspace, request.run_id) if request.resume else {}
        for question_id in reversed(request.question_ids):
            made = stored.get(question_id) or await self.record(request.workspace, request.run_id, question_id, texts)
            answer = agent_pb2.Answer(
                question_id=question_id,
                unit_id=made.unit_id,
                task_type=made.task_type,
                prediction=made.prediction,
                correct=made.correct,
                stop_reason=made.stop_reason,
                model_calls=1,
                resumed=question_id in stored,
            )
            yield agent_service_pb2.AnswerQuestionsResponse(answer=answer)

    async def record(
        self, workspace: str, run_id: str, question_id: str, texts: Mapping[str, str]
    ) -> prediction_pb2.Prediction:
        """Answer one question with these skills, durably."""
        question = self._questions[question_id]
        right = self._rule(run_id, question, texts[skill_file(question.task_type, texts)])
        made = prediction_pb2.Prediction(
            run_id=run_id,
            question_id=question_id,
            unit_id=question.unit_id,
            task_type=question.task_type,
            prediction=question.answer if right else "B",
            answer=question.answer,
            correct=right,
            stop_reason="finished",
        )
        rows = run_service_pb2.AppendPredictionsRequest(workspace=workspace, predictions=[made])
        await self._store.runs.AppendPredictions(rows)
        return made

    async def _texts(self, workspace: str, version: str) -> dict[str, str]:
        request = version_service_pb2.GetVersionRequest(
            workspace=workspace, kind=version_pb2.VERSION_KIND_SKILLS, version=version
        )
        found = await self._store.versions.GetVersion(request)
        return {each.name: each.text for each in found.version.files}

    async def _stored(self, workspace: str, run_id: str) -> dict[str, prediction_pb2.Prediction]:
        request = run_service_pb2.ListPredictionsRequest(workspace=workspace, run_id=run_id, page_size=1000)
        return {each.question_id: each for each in (await self._store.runs.ListPredictions(request)).predictions}


def storing_agent_parts(agent: StoringAgent) -> ServiceParts:
    """Its server."""

    def register(server: grpc.aio.Server) -> None:
        agent_service_pb2_grpc.add_AgentServiceServicer_to_server(agent, server)

    return ServiceParts(register, ("videotree.inference.v1.AgentService",), {}, _nothing)


async def _nothing() -> None:
    return None
