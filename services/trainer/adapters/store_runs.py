"""Runs, predictions and the sums of model calls over the store's gRPC."""

from __future__ import annotations

import grpc
from videotree.store.v1 import run_pb2, run_service_pb2_grpc
from videotree.store.v1 import run_service_pb2 as pb

from services.trainer.adapters.calls import Caller
from services.trainer.adapters.messages import from_message, to_message
from services.trainer.domain.runs import CallSummary, Prediction, Run

_STATUSES = {
    "finished": run_pb2.RUN_STATUS_FINISHED,
    "failed": run_pb2.RUN_STATUS_FAILED,
    "stopped": run_pb2.RUN_STATUS_STOPPED,
}


class StoreRuns:
    """The `Runs` port."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub, self._caller = run_service_pb2_grpc.RunServiceStub(channel), caller

    async def register(self, workspace: str, run: Run) -> bool:
        """Registers a run; returns whether it is new."""
        request = pb.RegisterRunRequest(workspace=workspace, run=to_message(run, run_pb2.Run))
        return (await self._caller.unary(self._stub.RegisterRun, request)).created

    async def finish(self, workspace: str, run_id: str, status: str, detail: str) -> None:
        """Ends a run as finished, failed or stopped."""
        request = pb.FinishRunRequest(
            workspace=workspace, run_id=run_id, status=_STATUSES[status], status_detail=detail
        )
        await self._caller.unary(self._stub.FinishRun, request)

    async def get(self, workspace: str, run_id: str) -> Run:
        """A run."""
        request = pb.GetRunRequest(workspace=workspace, run_id=run_id)
        return from_message((await self._caller.unary(self._stub.GetRun, request)).run, Run)

    async def all(self, workspace: str, kind: str = "") -> list[Run]:
        """Runs in order of start; only those of `kind` where one is given, gate arms never."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListRuns,
                pb.ListRunsRequest(workspace=workspace, run_kind=kind, page_size=1000, page_token=token),
            )
        )
        return [from_message(each, Run) async for page in pages for each in page.runs]

    async def predictions(self, workspace: str, run_id: str) -> list[Prediction]:
        """A run's predictions by question, without turns and reasoning."""
        request = pb.StreamPredictionsRequest(workspace=workspace, run_id=run_id, brief=True)
        batches = self._caller.stream(self._stub.StreamPredictions(request))
        return [from_message(each, Prediction) async for batch in batches for each in batch.predictions]

    async def call_summaries(self, workspace: str, run_id: str) -> list[CallSummary]:
        """Sums of the model calls made for a run and the runs derived from it."""
        request = pb.SummarizeLlmCallsRequest(workspace=workspace, run_id=run_id)
        answer = await self._caller.unary(self._stub.SummarizeLlmCalls, request)
        return [from_message(each, CallSummary) for each in answer.summaries]
