"""The store and the inference service as the gate sees them, served over real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import grpc
from videotree.inference.v1 import agent_pb2, agent_service_pb2, agent_service_pb2_grpc
from videotree.store.v1 import (
    evaluation_pb2,
    pool_pb2,
    training_service_pb2,
    training_service_pb2_grpc,
    version_pb2,
    version_service_pb2,
    version_service_pb2_grpc,
    workspace_service_pb2,
    workspace_service_pb2_grpc,
)

from services.runtime.serving import ServiceParts
from services.runtime.status import StatusRule

Answering = Callable[[agent_service_pb2.AnswerQuestionsRequest, str], Awaitable[tuple[bool, str]]]


class Away(Exception):
    """The neighbour can't serve."""


class Missing(Exception):
    """The neighbour doesn't have it."""


RULES = {
    Away: StatusRule(grpc.StatusCode.UNAVAILABLE, "AWAY"),
    Missing: StatusRule(grpc.StatusCode.NOT_FOUND, "MISSING"),
}


class FakeAgent(agent_service_pb2_grpc.AgentServiceServicer):
    """Answers each question with what `answering(request, question_id)` returns: (correct, stop reason)."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self.requests: list[agent_service_pb2.AnswerQuestionsRequest] = []
        self.open = 0
        self.peak = 0

    async def AnswerQuestions(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - the contract's name
        self.requests.append(request)
        self.open += len(request.question_ids)
        self.peak = max(self.peak, self.open)
        try:
            for question_id in request.question_ids:
                correct, stop_reason = await self._answering(request, question_id)
                answer = agent_pb2.Answer(
                    question_id=question_id, correct=correct, stop_reason=stop_reason, model_calls=3, prompt_tokens=100
                )
                yield agent_service_pb2.AnswerQuestionsResponse(answer=answer)
        finally:
            self.open -= len(request.question_ids)


class FakeStore(
    workspace_service_pb2_grpc.WorkspaceServiceServicer,
    version_service_pb2_grpc.VersionServiceServicer,
    training_service_pb2_grpc.TrainingServiceServicer,
):
    """One workspace `w` with skills `v1`; `cached` are its baseline results."""

    def __init__(self, units: Mapping[str, tuple[str, tuple[str, ...]]], files: Mapping[str, str]) -> None:
        self._units = units
        self._files = files
        self.cached: dict[str, evaluation_pb2.BaselineResult] = {}

    async def GetPools(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's name
        if request.workspace != "w":
            raise Missing(f"no workspace {request.workspace}")
        units = [
            pool_pb2.PoolUnit(unit_id=unit_id, task_type=task_type, question_ids=question_ids, pool=pool_pb2.POOL_VAL)
            for unit_id, (task_type, question_ids) in self._units.items()
        ]
        return workspace_service_pb2.GetPoolsResponse(pools=pool_pb2.Pools(units=units))

    async def GetVersion(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's name
        if (request.workspace, request.version) != ("w", "v1"):
            raise Missing(f"no skills {request.version}")
        files = [version_pb2.VersionFile(name=name, text=text) for name, text in self._files.items()]
        return version_service_pb2.GetVersionResponse(version=version_pb2.Version(version="v1", files=files))

    async def GetBaselineResults(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's name
        found = [
            row
            for unit_id in request.unit_ids
            if (row := self.cached.get(unit_id)) is not None
            and (row.task_type, row.skill_sha256) == (request.task_type, request.skill_sha256)
        ]
        return training_service_pb2.GetBaselineResultsResponse(results=found)

    async def PutBaselineResults(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's name
        await asyncio.sleep(0)
        for row in request.results:
            self.cached.setdefault(row.unit_id, row)
        return training_service_pb2.PutBaselineResultsResponse(created_count=len(request.results))


async def _nothing() -> None:
    return None


def agent_parts(agent: FakeAgent) -> ServiceParts:
    def register(server: grpc.aio.Server) -> None:
        agent_service_pb2_grpc.add_AgentServiceServicer_to_server(agent, server)

    return ServiceParts(register, ("videotree.inference.v1.AgentService",), RULES, _nothing)


def store_parts(store: FakeStore) -> ServiceParts:
    def register(server: grpc.aio.Server) -> None:
        workspace_service_pb2_grpc.add_WorkspaceServiceServicer_to_server(store, server)
        version_service_pb2_grpc.add_VersionServiceServicer_to_server(store, server)
        training_service_pb2_grpc.add_TrainingServiceServicer_to_server(store, server)

    names = ("WorkspaceService", "VersionService", "TrainingService")
    return ServiceParts(register, tuple(f"videotree.store.v1.{name}" for name in names), RULES, _nothing)
