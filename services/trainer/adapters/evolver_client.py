"""The evolver over its gRPC service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import grpc
from videotree.evolver.v1 import evolver_service_pb2, evolver_service_pb2_grpc

from services.trainer.adapters.calls import Caller
from services.trainer.adapters.messages import from_message, to_message
from services.trainer.domain.diagnoses import DiagnoseJob, DiagnoseProgress, DiagnoseResult, EvidenceScore
from services.trainer.domain.evolution import (
    AppendixRequest,
    AppendixUpdate,
    Proposal,
    ProposalRequest,
    SlowUpdate,
    SlowUpdateRequest,
)

_MODEL_TIMEOUT_SECONDS = 1800.0


class EvolverClient:
    """The `Evolver` port."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub, self._caller = evolver_service_pb2_grpc.EvolverServiceStub(channel), caller

    async def diagnose(self, job: DiagnoseJob) -> AsyncIterator[DiagnoseProgress | DiagnoseResult]:
        """Progress, then the result."""
        request = to_message(job, evolver_service_pb2.DiagnoseRequest)
        async for message in self._caller.stream(self._stub.Diagnose(request)):
            if message.WhichOneof("event") == "progress":
                yield from_message(message.progress, DiagnoseProgress)
            else:
                yield from_message(message.result, DiagnoseResult)

    async def propose(self, request: ProposalRequest) -> Proposal:
        """Proposes edits for one target and applies them."""
        message = to_message(request, evolver_service_pb2.ProposeEditRequest)
        answer = await self._caller.unary(self._stub.ProposeEdit, message, _MODEL_TIMEOUT_SECONDS)
        return from_message(answer, Proposal)

    async def consolidate_appendix(self, request: AppendixRequest) -> AppendixUpdate:
        """Adds reminders to a skill's appendix."""
        message = to_message(request, evolver_service_pb2.ConsolidateAppendixRequest)
        answer = await self._caller.unary(self._stub.ConsolidateAppendix, message, _MODEL_TIMEOUT_SECONDS)
        return from_message(answer, AppendixUpdate)

    async def slow_update(self, request: SlowUpdateRequest) -> SlowUpdate:
        """Writes the momentum block of each skill."""
        message = to_message(request, evolver_service_pb2.ProposeSlowUpdateRequest)
        answer = await self._caller.unary(self._stub.ProposeSlowUpdate, message, _MODEL_TIMEOUT_SECONDS)
        return from_message(answer, SlowUpdate)

    async def score_evidence(
        self, workspace: str, run_id: str, dataset: str, question_ids: Sequence[str]
    ) -> AsyncIterator[EvidenceScore]:
        """Rates the evidence given for a run's answers, blind to right and wrong."""
        request = evolver_service_pb2.ScoreEvidenceRequest(
            workspace=workspace, run_id=run_id, dataset=dataset, question_ids=question_ids
        )
        async for message in self._caller.stream(self._stub.ScoreEvidence(request)):
            yield from_message(message, EvidenceScore)
