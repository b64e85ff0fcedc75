"""TrainingService: translate, await one use case, translate back."""

# ruff: noqa: N802 - the methods are called what the protos call them

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from videotree.store.v1 import checkpoint_pb2, diagnosis_pb2, evaluation_pb2, gate_record_pb2, training_service_pb2_grpc
from videotree.store.v1 import evolution_record_pb2 as evolution_pb2
from videotree.store.v1 import training_service_pb2 as pb

from services.store.rpc import translate
from services.store.rpc.row_codec import enum_text, to_message, to_row
from services.store.use_cases.commits import Commits, EpochCommit, StepCommit
from services.store.use_cases.holds import Holds
from services.store.use_cases.paging import PageRequest
from services.store.use_cases.training_records import TrainingRecords

_Context = grpc.aio.ServicerContext[Any, Any]
_LONG = {"default": 1000, "most": 10_000}
_HOW = evaluation_pb2.HoldoutHow.DESCRIPTOR


class TrainingServicer(training_service_pb2_grpc.TrainingServiceServicer):
    """What steps and epochs decided."""

    def __init__(self, commits: Commits, records: TrainingRecords, holds: Holds) -> None:
        self._commits = commits
        self._records = records
        self._holds = holds

    async def HoldWorkspace(
        self, request: pb.HoldWorkspaceRequest, context: _Context
    ) -> AsyncIterator[pb.HoldWorkspaceResponse]:
        """Hold a workspace until the caller goes away."""
        async with self._holds.hold(request.workspace, request.run_id, request.holder):
            yield pb.HoldWorkspaceResponse()
            await asyncio.Event().wait()

    async def ClearStep(self, request: pb.ClearStepRequest, context: _Context) -> pb.ClearStepResponse:
        """Remove what a re-run of a step will write."""
        cleared = await self._commits.clear_step(request.workspace, request.run_id, request.epoch, request.step)
        return pb.ClearStepResponse(
            prediction_count=cleared.prediction_count,
            trace_count=cleared.trace_count,
            decision_count=cleared.decision_count,
            already_committed=cleared.already_committed,
        )

    async def CommitStep(self, request: pb.CommitStepRequest, context: _Context) -> pb.CommitStepResponse:
        """Commit all that a step decided."""
        done = await self._commits.commit_step(request.workspace, _step_commit(request))
        return pb.CommitStepResponse(
            versions=translate.version_messages(done.versions),
            manifest=translate.manifest_message(done.manifest),
            already_committed=done.already_committed,
        )

    async def CommitEpoch(self, request: pb.CommitEpochRequest, context: _Context) -> pb.CommitEpochResponse:
        """Commit all that an epoch's end decided."""
        done = await self._commits.commit_epoch(request.workspace, _epoch_commit(request))
        return pb.CommitEpochResponse(
            versions=translate.version_messages(done.versions),
            manifest=translate.manifest_message(done.manifest),
            already_committed=done.already_committed,
        )

    async def SaveCheckpoint(self, request: pb.SaveCheckpointRequest, context: _Context) -> pb.SaveCheckpointResponse:
        """Write a checkpoint by itself."""
        row = await self._records.save_checkpoint(request.workspace, to_row(request.checkpoint))
        return pb.SaveCheckpointResponse(checkpoint=to_message(checkpoint_pb2.Checkpoint, row))

    async def LoadCheckpoint(self, request: pb.LoadCheckpointRequest, context: _Context) -> pb.LoadCheckpointResponse:
        """Return a run's checkpoint."""
        fingerprints = dict(request.fingerprints.values) if request.HasField("fingerprints") else None
        row = await self._records.load_checkpoint(request.workspace, request.run_id, fingerprints)
        return pb.LoadCheckpointResponse(checkpoint=to_message(checkpoint_pb2.Checkpoint, row))

    async def ListStepReports(
        self, request: pb.ListStepReportsRequest, context: _Context
    ) -> pb.ListStepReportsResponse:
        """List step reports."""
        page = await self._records.run_page(request.workspace, "step_reports", request.run_id, _page(request))
        rows = [
            pb.StepReportRow(epoch=row["epoch"], step=row["step"], report=to_message(gate_record_pb2.StepReport, row))
            for row in page.items
        ]
        return pb.ListStepReportsResponse(rows=rows, next_page_token=page.next_token)

    async def ListGateEvidence(
        self, request: pb.ListGateEvidenceRequest, context: _Context
    ) -> pb.ListGateEvidenceResponse:
        """List gate evidence."""
        page = await self._records.run_page(request.workspace, "gate_evidence", request.run_id, _page(request))
        rows = [
            pb.GateEvidenceRow(
                epoch=row["epoch"], step=row["step"], evidence=to_message(gate_record_pb2.GateEvidence, row)
            )
            for row in page.items
        ]
        return pb.ListGateEvidenceResponse(rows=rows, next_page_token=page.next_token)

    async def ListQuadrantPairs(
        self, request: pb.ListQuadrantPairsRequest, context: _Context
    ) -> pb.ListQuadrantPairsResponse:
        """List quadrants."""
        page = await self._records.run_page(request.workspace, "quadrant_pairs", request.run_id, _page(request))
        rows = [
            pb.QuadrantPairRow(epoch=row["epoch"], step=row["step"], pair=to_message(gate_record_pb2.QuadrantPair, row))
            for row in page.items
        ]
        return pb.ListQuadrantPairsResponse(rows=rows, next_page_token=page.next_token)

    async def ListEvolutionRecords(
        self, request: pb.ListEvolutionRecordsRequest, context: _Context
    ) -> pb.ListEvolutionRecordsResponse:
        """List evolution records."""
        page = await self._records.run_page(request.workspace, "evolution_records", request.run_id, _page(request))
        rows = [
            pb.EvolutionRecordRow(
                epoch=row["epoch"], step=row["step"], record=to_message(evolution_pb2.EvolutionRecord, row)
            )
            for row in page.items
        ]
        return pb.ListEvolutionRecordsResponse(rows=rows, next_page_token=page.next_token)

    async def ListDualMetrics(
        self, request: pb.ListDualMetricsRequest, context: _Context
    ) -> pb.ListDualMetricsResponse:
        """List evaluations."""
        page = await self._records.run_page(request.workspace, "dual_metric", request.run_id, _page(request))
        return pb.ListDualMetricsResponse(
            dual_metrics=[to_message(evaluation_pb2.DualMetric, row) for row in page.items],
            next_page_token=page.next_token,
        )

    async def PutHoldoutEval(self, request: pb.PutHoldoutEvalRequest, context: _Context) -> pb.PutHoldoutEvalResponse:
        """Write the intent or the result of a held-out evaluation."""
        enum_text(_HOW, request.holdout_eval.how, "holdout_eval.how")
        row = await self._records.put_holdout_eval(request.workspace, to_row(request.holdout_eval))
        return pb.PutHoldoutEvalResponse(holdout_eval=to_message(evaluation_pb2.HoldoutEval, row))

    async def ListHoldoutEvals(
        self, request: pb.ListHoldoutEvalsRequest, context: _Context
    ) -> pb.ListHoldoutEvalsResponse:
        """List held-out evaluations."""
        page = await self._records.run_page(request.workspace, "holdout_eval", request.run_id, _page(request))
        return pb.ListHoldoutEvalsResponse(
            holdout_evals=[to_message(evaluation_pb2.HoldoutEval, row) for row in page.items],
            next_page_token=page.next_token,
        )

    async def ListHoldoutLines(
        self, request: pb.ListHoldoutLinesRequest, context: _Context
    ) -> pb.ListHoldoutLinesResponse:
        """List the lines of the held-out table."""
        page = await self._records.run_page(request.workspace, "holdout_lines", request.run_id, _page(request))
        return pb.ListHoldoutLinesResponse(
            holdout_lines=[to_message(evaluation_pb2.HoldoutLine, row) for row in page.items],
            next_page_token=page.next_token,
        )

    async def ListUnitEstimates(
        self, request: pb.ListUnitEstimatesRequest, context: _Context
    ) -> pb.ListUnitEstimatesResponse:
        """List unit estimates."""
        page = await self._records.run_page(request.workspace, "gate_pools", request.run_id, _page(request))
        return pb.ListUnitEstimatesResponse(
            unit_estimates=[to_message(evaluation_pb2.UnitEstimate, row) for row in page.items],
            next_page_token=page.next_token,
        )

    async def PutBaselineResults(
        self, request: pb.PutBaselineResultsRequest, context: _Context
    ) -> pb.PutBaselineResultsResponse:
        """Write baseline results."""
        rows = [to_row(each) for each in request.results]
        created = await self._records.put_baseline_results(request.workspace, rows)
        return pb.PutBaselineResultsResponse(created_count=created)

    async def GetBaselineResults(
        self, request: pb.GetBaselineResultsRequest, context: _Context
    ) -> pb.GetBaselineResultsResponse:
        """Return cached baseline results."""
        key = {
            "task_type": request.task_type,
            "skill_sha256": request.skill_sha256,
            "prompts_version": request.prompts_version,
        }
        rows = await self._records.baseline_results(request.workspace, key, list(request.unit_ids))
        return pb.GetBaselineResultsResponse(results=[to_message(evaluation_pb2.BaselineResult, row) for row in rows])

    async def PutDiagnosisDetails(
        self, request: pb.PutDiagnosisDetailsRequest, context: _Context
    ) -> pb.PutDiagnosisDetailsResponse:
        """Write the diagnosis rows of a run."""
        rows = {
            "question_metrics": [to_row(each) for each in request.metrics],
            "span_evaluations": [to_row(each) for each in request.spans],
            "diagnosis_traces": [to_row(each) for each in request.stages],
        }
        written = await self._records.put_diagnosis_details(request.workspace, rows)
        return pb.PutDiagnosisDetailsResponse(row_count=written)

    async def ListDiagnosisDetails(
        self, request: pb.ListDiagnosisDetailsRequest, context: _Context
    ) -> pb.ListDiagnosisDetailsResponse:
        """List metrics, spans and stages of a run's questions."""
        page = await self._records.diagnosis_page(
            request.workspace, request.run_id, PageRequest(request.page_size, request.page_token, default=200)
        )
        return pb.ListDiagnosisDetailsResponse(
            metrics=[to_message(diagnosis_pb2.QuestionMetric, row) for row in page.rows["question_metrics"]],
            spans=[to_message(diagnosis_pb2.SpanEvaluation, row) for row in page.rows["span_evaluations"]],
            stages=[to_message(diagnosis_pb2.DiagnosisStage, row) for row in page.rows["diagnosis_traces"]],
            next_page_token=page.next_token,
        )

    async def PutBaselineDiagnoses(
        self, request: pb.PutBaselineDiagnosesRequest, context: _Context
    ) -> pb.PutBaselineDiagnosesResponse:
        """Write offline diagnoses."""
        rows = [to_row(each) for each in request.diagnoses]
        return pb.PutBaselineDiagnosesResponse(
            row_count=await self._records.put_baseline_diagnoses(request.workspace, rows)
        )

    async def ListBaselineDiagnoses(
        self, request: pb.ListBaselineDiagnosesRequest, context: _Context
    ) -> pb.ListBaselineDiagnosesResponse:
        """List offline diagnoses."""
        page = await self._records.baseline_diagnosis_page(request.workspace, request.run_id, _page(request))
        return pb.ListBaselineDiagnosesResponse(
            diagnoses=[to_message(diagnosis_pb2.Diagnosis, row) for row in page.items],
            next_page_token=page.next_token,
        )


def _page(request: Any) -> PageRequest:
    return PageRequest(request.page_size, request.page_token, **_LONG)


def _step_commit(request: pb.CommitStepRequest) -> StepCommit:
    place: dict[str, Any] = {"run_id": request.run_id, "epoch": request.epoch, "step": request.step}
    return StepCommit(
        **place,
        decisions={
            "gate_evidence": [to_row(each, **place) for each in request.evidence],
            "quadrant_pairs": [to_row(each, **place) for each in request.quadrants],
            "step_reports": [to_row(each, **place) for each in request.step_reports],
            "evolution_records": [to_row(each, **place) for each in request.evolution_records],
        },
        changes=translate.change_values(request.changes),
        checkpoint=to_row(request.checkpoint),
    )


def _epoch_commit(request: pb.CommitEpochRequest) -> EpochCommit:
    place: dict[str, Any] = {"run_id": request.run_id, "epoch": request.epoch}
    return EpochCommit(
        **place,
        dual_metrics=[to_row(each, **place) for each in request.dual_metrics],
        holdout_evals=[to_row(each, run_id=request.run_id) for each in request.holdout_evals],
        holdout_lines=[to_row(each, run_id=request.run_id) for each in request.holdout_lines],
        observations={each.unit_id: each.correct for each in request.observations},
        changes=translate.change_values(request.changes),
        best=translate.best_values(request.best),
        checkpoint=to_row(request.checkpoint),
        evolution_records=[to_row(each, **place, step=request.step) for each in request.evolution_records],
    )
