"""RunService: translate, await one use case, translate back."""

# ruff: noqa: N802 - the methods are called what the protos call them

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
from videotree.store.v1 import llm_call_pb2, prediction_pb2, run_pb2, run_service_pb2_grpc
from videotree.store.v1 import run_service_pb2 as pb

from services.store.rpc.row_codec import enum_text, to_message, to_row
from services.store.use_cases.paging import PageRequest
from services.store.use_cases.ports import Row
from services.store.use_cases.runs import PredictionFilter, Runs

_Context = grpc.aio.ServicerContext[Any, Any]
_LONG = {"default": 1000, "most": 10_000}
_STATUS = run_pb2.RunStatus.DESCRIPTOR


class RunServicer(run_service_pb2_grpc.RunServiceServicer):
    """Runs and what they produced."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    async def RegisterRun(self, request: pb.RegisterRunRequest, context: _Context) -> pb.RegisterRunResponse:
        """Register a run."""
        row, created = await self._runs.register(request.workspace, to_row(request.run))
        return pb.RegisterRunResponse(run=to_message(run_pb2.Run, row), created=created)

    async def FinishRun(self, request: pb.FinishRunRequest, context: _Context) -> pb.FinishRunResponse:
        """End a run."""
        status = enum_text(_STATUS, request.status, "status")
        row = await self._runs.finish(request.workspace, request.run_id, status, request.status_detail)
        return pb.FinishRunResponse(run=to_message(run_pb2.Run, row))

    async def GetRun(self, request: pb.GetRunRequest, context: _Context) -> pb.GetRunResponse:
        """Return a run."""
        row = await self._runs.get(request.workspace, request.run_id)
        return pb.GetRunResponse(run=to_message(run_pb2.Run, row))

    async def ListRuns(self, request: pb.ListRunsRequest, context: _Context) -> pb.ListRunsResponse:
        """List runs."""
        page = await self._runs.page(
            request.workspace,
            request.run_kind,
            request.include_gate_runs,
            PageRequest(request.page_size, request.page_token),
        )
        return pb.ListRunsResponse(
            runs=[to_message(run_pb2.Run, row) for row in page.items], next_page_token=page.next_token
        )

    async def AppendPredictions(
        self, request: pb.AppendPredictionsRequest, context: _Context
    ) -> pb.AppendPredictionsResponse:
        """Write predictions and traces."""
        predictions = [to_row(each) for each in request.predictions]
        traces = [to_row(each) for each in request.traces]
        await self._runs.append_answers(request.workspace, predictions, traces)
        return pb.AppendPredictionsResponse(prediction_count=len(predictions), trace_count=len(traces))

    async def ListPredictions(
        self, request: pb.ListPredictionsRequest, context: _Context
    ) -> pb.ListPredictionsResponse:
        """List predictions."""
        wanted = PredictionFilter(request.run_id, tuple(request.question_ids), request.include_gate_runs, request.brief)
        page = await self._runs.prediction_page(
            request.workspace, wanted, PageRequest(request.page_size, request.page_token, **_LONG)
        )
        return pb.ListPredictionsResponse(predictions=_predictions(page.items), next_page_token=page.next_token)

    async def StreamPredictions(
        self, request: pb.StreamPredictionsRequest, context: _Context
    ) -> AsyncIterator[pb.StreamPredictionsResponse]:
        """Stream a run's predictions."""
        async for rows in self._runs.prediction_chunks(request.workspace, request.run_id, request.brief):
            yield pb.StreamPredictionsResponse(predictions=_predictions(rows))

    async def ListTraces(self, request: pb.ListTracesRequest, context: _Context) -> pb.ListTracesResponse:
        """List traces."""
        page = await self._runs.trace_page(
            request.workspace,
            request.run_id,
            tuple(request.question_ids),
            PageRequest(request.page_size, request.page_token, **_LONG),
        )
        return pb.ListTracesResponse(
            traces=[to_message(prediction_pb2.Trace, row) for row in page.items], next_page_token=page.next_token
        )

    async def AppendLlmCalls(self, request: pb.AppendLlmCallsRequest, context: _Context) -> pb.AppendLlmCallsResponse:
        """Write records of model calls."""
        calls = [to_row(each) for each in request.calls]
        await self._runs.append_llm_calls(request.workspace, calls)
        return pb.AppendLlmCallsResponse(call_count=len(calls))

    async def SummarizeLlmCalls(
        self, request: pb.SummarizeLlmCallsRequest, context: _Context
    ) -> pb.SummarizeLlmCallsResponse:
        """Sum a run's model calls."""
        rows = await self._runs.llm_call_sums(request.workspace, request.run_id)
        return pb.SummarizeLlmCallsResponse(summaries=[_summary(row) for row in rows])


def _predictions(rows: Any) -> list[prediction_pb2.Prediction]:
    return [to_message(prediction_pb2.Prediction, row) for row in rows]


def _summary(row: Row) -> llm_call_pb2.LlmCallSummary:
    return to_message(
        llm_call_pb2.LlmCallSummary,
        {**row, "call_count": row["row_count"], "unknown_usage_count": row["completion_tokens_missing"]},
    )
