"""The ledger of training over the store's gRPC: what steps and epochs decided, and the checkpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import grpc
from videotree.store.v1 import checkpoint_pb2, diagnosis_pb2, evaluation_pb2, training_service_pb2_grpc
from videotree.store.v1 import training_service_pb2 as pb

from services.trainer.adapters.calls import Caller
from services.trainer.adapters.messages import from_message, to_message
from services.trainer.adapters.workspace_hold import WorkspaceHold
from services.trainer.domain.checkpoint import Checkpoint, Fingerprints
from services.trainer.domain.decisions import Committed, EpochDecision, StepDecision
from services.trainer.domain.diagnoses import Diagnosis
from services.trainer.domain.evaluations import DualMetric, HoldoutEval, HoldoutRow, HoldoutTable, UnitEstimate
from services.trainer.domain.step_rows import EvolutionRecordRow, GateEvidenceRow, QuadrantPairRow, StepReportRow

T = TypeVar("T")

_COMMIT_TIMEOUT_SECONDS = 300.0
_PAGE = 10_000


class StoreLedger:
    """The `Ledger` port."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub, self._caller = training_service_pb2_grpc.TrainingServiceStub(channel), caller

    async def holding(self, workspace: str, run_id: str, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, during which no other training works on the workspace."""
        return await WorkspaceHold(self._stub, self._caller, workspace, run_id).during(work)

    async def clear_step(self, workspace: str, run_id: str, epoch: int, step: int) -> bool:
        """Removes what a re-run of the step will write; returns whether the step was committed already."""
        request = pb.ClearStepRequest(workspace=workspace, run_id=run_id, epoch=epoch, step=step)
        return (await self._caller.unary(self._stub.ClearStep, request, _COMMIT_TIMEOUT_SECONDS)).already_committed

    async def commit_step(self, decision: StepDecision) -> Committed:
        """Commits all that a step decided in one transaction."""
        request = to_message(decision, pb.CommitStepRequest)
        answer = await self._caller.unary(self._stub.CommitStep, request, _COMMIT_TIMEOUT_SECONDS)
        return from_message(answer, Committed)

    async def commit_epoch(self, decision: EpochDecision) -> Committed:
        """Commits all that an epoch's end decided in one transaction."""
        request = to_message(decision, pb.CommitEpochRequest)
        answer = await self._caller.unary(self._stub.CommitEpoch, request, _COMMIT_TIMEOUT_SECONDS)
        return from_message(answer, Committed)

    async def save_checkpoint(self, workspace: str, checkpoint: Checkpoint) -> None:
        """Writes a checkpoint by itself, at the start of a training."""
        request = pb.SaveCheckpointRequest(
            workspace=workspace, checkpoint=to_message(checkpoint, checkpoint_pb2.Checkpoint)
        )
        await self._caller.unary(self._stub.SaveCheckpoint, request)

    async def load_checkpoint(self, workspace: str, run_id: str, fingerprints: Fingerprints | None) -> Checkpoint:
        """A run's checkpoint; with `fingerprints`, refused when they differ from the saved ones."""
        request = pb.LoadCheckpointRequest(workspace=workspace, run_id=run_id)
        if fingerprints is not None:
            request.fingerprints.CopyFrom(to_message(fingerprints, checkpoint_pb2.Fingerprints))
        return from_message((await self._caller.unary(self._stub.LoadCheckpoint, request)).checkpoint, Checkpoint)

    async def step_reports(self, workspace: str, run_id: str) -> list[StepReportRow]:
        """Step reports by (epoch, step, type)."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListStepReports,
                pb.ListStepReportsRequest(workspace=workspace, run_id=run_id, page_size=_PAGE, page_token=token),
            )
        )
        return [from_message(each, StepReportRow) async for page in pages for each in page.rows]

    async def gate_evidence(self, workspace: str, run_id: str) -> list[GateEvidenceRow]:
        """Gate evidence by (epoch, step, type, rank)."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListGateEvidence,
                pb.ListGateEvidenceRequest(workspace=workspace, run_id=run_id, page_size=_PAGE, page_token=token),
            )
        )
        return [from_message(each, GateEvidenceRow) async for page in pages for each in page.rows]

    async def quadrant_pairs(self, workspace: str, run_id: str) -> list[QuadrantPairRow]:
        """Quadrants by (epoch, step, type, unit)."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListQuadrantPairs,
                pb.ListQuadrantPairsRequest(workspace=workspace, run_id=run_id, page_size=_PAGE, page_token=token),
            )
        )
        return [from_message(each, QuadrantPairRow) async for page in pages for each in page.rows]

    async def evolution_records(self, workspace: str, run_id: str) -> list[EvolutionRecordRow]:
        """Evolution records by (epoch, step, target)."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListEvolutionRecords,
                pb.ListEvolutionRecordsRequest(workspace=workspace, run_id=run_id, page_size=_PAGE, page_token=token),
            )
        )
        return [from_message(each, EvolutionRecordRow) async for page in pages for each in page.rows]

    async def dual_metrics(self, workspace: str, run_id: str) -> list[DualMetric]:
        """Evaluations by (epoch, version kind, pool)."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListDualMetrics,
                pb.ListDualMetricsRequest(workspace=workspace, run_id=run_id, page_size=_PAGE, page_token=token),
            )
        )
        return [from_message(each, DualMetric) async for page in pages for each in page.dual_metrics]

    async def put_holdout_eval(self, workspace: str, holdout_eval: HoldoutEval) -> None:
        """Writes the intent or the result of a held-out evaluation."""
        request = pb.PutHoldoutEvalRequest(
            workspace=workspace, holdout_eval=to_message(holdout_eval, evaluation_pb2.HoldoutEval)
        )
        await self._caller.unary(self._stub.PutHoldoutEval, request)

    async def holdout_table(self, workspace: str, run_id: str) -> HoldoutTable:
        """Held-out evaluations by version pair, and the lines of each epoch."""
        return HoldoutTable(
            tuple(await self._holdout_evals(workspace, run_id)), tuple(await self._holdout_lines(workspace, run_id))
        )

    async def unit_estimates(self, workspace: str, run_id: str) -> list[UnitEstimate]:
        """Running estimates by unit."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListUnitEstimates,
                pb.ListUnitEstimatesRequest(workspace=workspace, run_id=run_id, page_size=_PAGE, page_token=token),
            )
        )
        return [from_message(each, UnitEstimate) async for page in pages for each in page.unit_estimates]

    async def put_baseline_diagnoses(self, workspace: str, diagnoses: Sequence[Diagnosis]) -> int:
        """Writes offline diagnoses by fingerprint; returns the number of rows."""
        request = pb.PutBaselineDiagnosesRequest(
            workspace=workspace, diagnoses=[to_message(each, diagnosis_pb2.Diagnosis) for each in diagnoses]
        )
        answer = await self._caller.unary(self._stub.PutBaselineDiagnoses, request, _COMMIT_TIMEOUT_SECONDS)
        return answer.row_count

    async def baseline_diagnoses(self, workspace: str, run_id: str) -> list[Diagnosis]:
        """Offline diagnoses of a run by fingerprint."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListBaselineDiagnoses,
                pb.ListBaselineDiagnosesRequest(workspace=workspace, run_id=run_id, page_size=_PAGE, page_token=token),
            )
        )
        return [from_message(each, Diagnosis) async for page in pages for each in page.diagnoses]

    async def _holdout_evals(self, workspace: str, run_id: str) -> list[HoldoutEval]:
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListHoldoutEvals,
                pb.ListHoldoutEvalsRequest(workspace=workspace, run_id=run_id, page_size=_PAGE, page_token=token),
            )
        )
        return [from_message(each, HoldoutEval) async for page in pages for each in page.holdout_evals]

    async def _holdout_lines(self, workspace: str, run_id: str) -> list[HoldoutRow]:
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListHoldoutLines,
                pb.ListHoldoutLinesRequest(workspace=workspace, run_id=run_id, page_size=_PAGE, page_token=token),
            )
        )
        return [from_message(each, HoldoutRow) async for page in pages for each in page.holdout_lines]
