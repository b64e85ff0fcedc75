"""Runs, questions, versions and trees over gRPC."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import grpc
from async_lru import alru_cache
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_random_exponential
from videotree.store.v1 import (
    library_service_pb2,
    library_service_pb2_grpc,
    run_service_pb2,
    run_service_pb2_grpc,
    training_service_pb2,
    training_service_pb2_grpc,
    version_pb2,
    version_service_pb2,
    version_service_pb2_grpc,
)

from services.evolver.adapters.failures import store_failure
from services.evolver.adapters.store_messages import answered_value, detail_messages, question_value, step_value
from services.evolver.domain.case import Answered
from services.evolver.domain.errors import UnknownRun
from services.evolver.domain.trace import TraceStep
from services.evolver.use_cases.ports import QuestionDetails
from services.questions import Question
from services.video_tree import TreeFault, VideoTree, parse_tree

_Result = TypeVar("_Result")

_QUESTIONS_A_CALL = 500
_PREDICTIONS_A_PAGE = 500
_TRACES_A_PAGE = 500
_DETAILS_A_CALL = 500
_TREES_KEPT = 256
_TREE_SECONDS = 300.0
_CALL_SECONDS = 60.0


class StoreArchive:
    """RunArchive over the store. While it is away a call is tried again for `retry_seconds`; all may be repeated."""

    def __init__(self, channel: grpc.aio.Channel, retry_seconds: float) -> None:
        self._library = library_service_pb2_grpc.LibraryServiceStub(channel)
        self._runs = run_service_pb2_grpc.RunServiceStub(channel)
        self._versions = version_service_pb2_grpc.VersionServiceStub(channel)
        self._training = training_service_pb2_grpc.TrainingServiceStub(channel)
        self._retry_seconds = retry_seconds
        self._kept_tree = alru_cache(maxsize=_TREES_KEPT, ttl=_TREE_SECONDS)(self._load_tree)

    async def predictions(self, workspace: str, run_id: str, question_ids: Sequence[str]) -> list[Answered]:
        """See RunArchive."""
        found: list[Answered] = []
        for part in _parts(question_ids) or [[]]:
            request = run_service_pb2.ListPredictionsRequest(
                workspace=workspace, run_id=run_id, question_ids=part, page_size=_PREDICTIONS_A_PAGE
            )
            while True:
                page = await self._call("ListPredictions", partial(self._runs.ListPredictions, request))
                found.extend(map(answered_value, page.predictions))
                request.page_token = page.next_page_token
                if not page.next_page_token:
                    break
        return sorted(found, key=lambda answer: answer.question_id)

    async def traces(
        self, workspace: str, run_id: str, question_ids: Sequence[str]
    ) -> Mapping[str, tuple[TraceStep, ...]]:
        """See RunArchive."""
        found: defaultdict[str, list[TraceStep]] = defaultdict(list)
        for part in _parts(question_ids):
            request = run_service_pb2.ListTracesRequest(
                workspace=workspace, run_id=run_id, question_ids=part, page_size=_TRACES_A_PAGE
            )
            while True:
                page = await self._call("ListTraces", partial(self._runs.ListTraces, request))
                for trace in page.traces:
                    found[trace.question_id].append(step_value(trace))
                request.page_token = page.next_page_token
                if not page.next_page_token:
                    break
        return {key: tuple(sorted(steps, key=lambda step: step.step)) for key, steps in found.items()}

    async def questions(self, dataset: str, question_ids: Sequence[str]) -> Mapping[str, Question]:
        """See RunArchive."""
        found: dict[str, Question] = {}
        for part in _parts(question_ids):
            request = library_service_pb2.BatchGetQuestionsRequest(dataset=dataset, question_ids=part)
            response = await self._call("BatchGetQuestions", partial(self._library.BatchGetQuestions, request))
            found |= {question.question_id: question_value(question) for question in response.questions}
        return found

    async def skills(self, workspace: str, version: str) -> Mapping[str, str]:
        """See RunArchive."""
        found = await self._version(workspace, version_pb2.VERSION_KIND_SKILLS, version)
        return {file.name: file.text for file in found.files}

    async def prompts_sha256(self, workspace: str, version: str) -> str:
        """See RunArchive."""
        return (await self._version(workspace, version_pb2.VERSION_KIND_PROMPTS, version)).sha256

    async def tree(self, video_id: str) -> VideoTree | None:
        """See RunArchive. Trees are kept for five minutes, because one can be replaced by force."""
        return await self._kept_tree(video_id) if video_id else None

    async def save_details(self, workspace: str, run_id: str, details: Sequence[QuestionDetails]) -> None:
        """See RunArchive."""
        for start in range(0, len(details), _DETAILS_A_CALL):
            metrics, spans, stages = detail_messages(run_id, details[start : start + _DETAILS_A_CALL])
            request = training_service_pb2.PutDiagnosisDetailsRequest(
                workspace=workspace, metrics=metrics, spans=spans, stages=stages
            )
            await self._call("PutDiagnosisDetails", partial(self._training.PutDiagnosisDetails, request))

    async def _version(
        self, workspace: str, kind: version_pb2.VersionKind.ValueType, version: str
    ) -> version_pb2.Version:
        request = version_service_pb2.GetVersionRequest(workspace=workspace, kind=kind, version=version)
        response = await self._call("GetVersion", partial(self._versions.GetVersion, request))
        return response.version

    async def _load_tree(self, video_id: str) -> VideoTree | None:
        request = library_service_pb2.GetVideoTreeRequest(video_id=video_id)
        try:
            response = await self._call("GetVideoTree", partial(self._library.GetVideoTree, request))
            return parse_tree(response.tree_json)
        except (UnknownRun, TreeFault):
            return None

    async def _call(self, name: str, start: Callable[..., Awaitable[_Result]]) -> _Result:
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception(_is_away),
                stop=stop_after_delay(self._retry_seconds),
                wait=wait_random_exponential(multiplier=0.1, max=2.0),
                reraise=True,
            ):
                with attempt:
                    return await start(timeout=_CALL_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise store_failure(error, name) from error
        raise AssertionError("a retry loop ends with a result or an error")


def _parts(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + _QUESTIONS_A_CALL] for start in range(0, len(ids), _QUESTIONS_A_CALL)]


def _is_away(error: BaseException) -> bool:
    return isinstance(error, grpc.aio.AioRpcError) and error.code() is grpc.StatusCode.UNAVAILABLE
