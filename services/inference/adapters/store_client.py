"""The store, as answering questions sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

import grpc
from async_lru import alru_cache
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_random_exponential
from videotree.store.v1 import (
    library_service_pb2,
    library_service_pb2_grpc,
    prediction_pb2,
    run_service_pb2,
    run_service_pb2_grpc,
    version_pb2,
    version_service_pb2,
    version_service_pb2_grpc,
)

from services.inference.adapters.store_messages import prediction_message, question_value, record_value, trace_messages
from services.inference.domain.agent_errors import NotFound, RecordRefused, StoreUnavailable
from services.inference.domain.agent_loop import StopReason
from services.inference.domain.prediction import AnswerRecord
from services.inference.use_cases.answer_ports import (
    FramesMissing,
    LoadedTree,
    VersionKind,
    VideoUnusable,
)
from services.questions import Question
from services.video_tree import TreeFault, parse_tree

_Result = TypeVar("_Result")

_QUESTIONS_A_CALL = 1_000
_PREDICTIONS_A_PAGE = 1_000
_TREES_KEPT = 256
_TREE_SECONDS = 300.0
_VERSIONS_KEPT = 64
_VERSION_SECONDS = 5.0
_CALL_SECONDS = 30.0
_RETRY_SECONDS = 20.0
_ANSWERED = frozenset(reason.value for reason in StopReason if not reason.is_infra)
_KINDS: Mapping[VersionKind, version_pb2.VersionKind.ValueType] = {
    VersionKind.SKILLS: version_pb2.VERSION_KIND_SKILLS,
    VersionKind.PROMPTS: version_pb2.VERSION_KIND_PROMPTS,
}


class StoreClient:
    """Library and AnswerLog over gRPC.

    A store that is away is tried again for 20 seconds: every call here may be repeated. Trees are kept for five
    minutes and versions for five seconds, because both can be replaced by force under their old names.
    """

    def __init__(self, channel: grpc.aio.Channel, *, retry_seconds: float = _RETRY_SECONDS) -> None:
        self._library = library_service_pb2_grpc.LibraryServiceStub(channel)
        self._runs = run_service_pb2_grpc.RunServiceStub(channel)
        self._versions = version_service_pb2_grpc.VersionServiceStub(channel)
        self._retry_seconds = retry_seconds
        self._kept_tree = alru_cache(maxsize=_TREES_KEPT, ttl=_TREE_SECONDS)(self._load_tree)
        self._kept_version = alru_cache(maxsize=_VERSIONS_KEPT, ttl=_VERSION_SECONDS)(self._load_version)

    async def questions(self, dataset: str, question_ids: Sequence[str]) -> list[Question]:
        """See Library."""
        found: list[Question] = []
        for start in range(0, len(question_ids), _QUESTIONS_A_CALL):
            request = library_service_pb2.BatchGetQuestionsRequest(
                dataset=dataset, question_ids=question_ids[start : start + _QUESTIONS_A_CALL]
            )
            response = await self._call(partial(self._library.BatchGetQuestions, request, timeout=_CALL_SECONDS))
            found.extend(map(question_value, response.questions))
        return found

    async def version(self, workspace: str, kind: VersionKind, version: str) -> Mapping[str, str]:
        """See Library."""
        return await self._kept_version(workspace, kind, version)

    async def tree(self, video_id: str) -> LoadedTree:
        """See Library."""
        return await self._kept_tree(video_id)

    async def frames(self, video_id: str, names: Sequence[str]) -> list[bytes]:
        """See Library."""
        request = library_service_pb2.GetFramesRequest(video_id=video_id, names=names)
        try:
            response = await self._call(partial(self._library.GetFrames, request, timeout=_CALL_SECONDS))
        except (NotFound, RecordRefused) as error:
            raise FramesMissing(names) from error
        return [frame.jpeg for frame in response.frames]

    async def append(self, workspace: str, record: AnswerRecord) -> None:
        """See AnswerLog."""
        request = run_service_pb2.AppendPredictionsRequest(
            workspace=workspace, predictions=[prediction_message(record)], traces=trace_messages(record)
        )
        await self._call(partial(self._runs.AppendPredictions, request, timeout=_CALL_SECONDS))

    async def answered(self, workspace: str, run_id: str, questions: Collection[Question]) -> list[AnswerRecord]:
        """See AnswerLog."""
        wanted = {question.question_id: question for question in questions}
        stored = [
            prediction
            for prediction in await self._predictions(workspace, run_id, list(wanted))
            if prediction.question_id in wanted and prediction.stop_reason in _ANSWERED
        ]
        return [record_value(prediction, wanted[prediction.question_id]) for prediction in stored]

    async def _predictions(
        self, workspace: str, run_id: str, question_ids: Sequence[str]
    ) -> list[prediction_pb2.Prediction]:
        found: list[prediction_pb2.Prediction] = []
        token = ""
        while True:
            request = run_service_pb2.ListPredictionsRequest(
                workspace=workspace,
                run_id=run_id,
                question_ids=question_ids,
                include_gate_runs=True,
                page_size=_PREDICTIONS_A_PAGE,
                page_token=token,
            )
            response = await self._call(partial(self._runs.ListPredictions, request, timeout=_CALL_SECONDS))
            found.extend(response.predictions)
            token = response.next_page_token
            if not token:
                return found

    async def _load_version(self, workspace: str, kind: VersionKind, version: str) -> Mapping[str, str]:
        request = version_service_pb2.GetVersionRequest(workspace=workspace, kind=_KINDS[kind], version=version)
        response = await self._call(partial(self._versions.GetVersion, request, timeout=_CALL_SECONDS))
        return {file.name: file.text for file in response.version.files}

    async def _load_tree(self, video_id: str) -> LoadedTree:
        if not video_id:
            raise VideoUnusable("the question names no video; text-only questions need the direct solver")
        request = library_service_pb2.GetVideoTreeRequest(video_id=video_id)
        try:
            response = await self._call(partial(self._library.GetVideoTree, request, timeout=_CALL_SECONDS))
            tree = await asyncio.to_thread(parse_tree, response.tree_json)  # a long video has megabytes
            return LoadedTree(tree, response.sha256)
        except NotFound as error:
            raise VideoUnusable(f"the store has no tree of video {video_id!r}") from error
        except TreeFault as error:
            raise VideoUnusable(f"the tree of video {video_id!r} is faulty: {error}") from error

    async def _call(self, start: Callable[[], Awaitable[_Result]]) -> _Result:
        """The answer to a call that may be repeated, retried while the store is away."""
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception(_is_away),
                stop=stop_after_delay(self._retry_seconds),
                wait=wait_random_exponential(multiplier=0.1, max=2.0),
                reraise=True,
            ):
                with attempt:
                    return await start()
        except grpc.aio.AioRpcError as error:
            raise _translated(error) from error
        raise AssertionError("a retry loop ends with a result or an error")


def _is_away(error: BaseException) -> bool:
    return isinstance(error, grpc.aio.AioRpcError) and error.code() is grpc.StatusCode.UNAVAILABLE


def _translated(error: grpc.aio.AioRpcError) -> Exception:
    detail = error.details() or error.code().name
    if error.code() is grpc.StatusCode.NOT_FOUND:
        return NotFound(detail)
    if error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED):
        return RecordRefused(detail)
    return StoreUnavailable(f"the store answered {error.code().name}: {detail}")
