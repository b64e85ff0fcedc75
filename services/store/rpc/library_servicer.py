"""LibraryService: translate, await one use case, translate back."""

# ruff: noqa: N802 - the methods are called what the protos call them

from __future__ import annotations

from typing import Any

import grpc
from videotree.store.v1 import library_service_pb2 as pb
from videotree.store.v1 import library_service_pb2_grpc, video_pb2

from services.store.rpc import translate
from services.store.use_cases.library import Dataset, Frame, Library
from services.store.use_cases.paging import PageRequest

_Context = grpc.aio.ServicerContext[Any, Any]
_LONG = {"default": 1000, "most": 10_000}


class LibraryServicer(library_service_pb2_grpc.LibraryServiceServicer):
    """Question sets, video trees and frames."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def ImportQuestions(
        self, request: pb.ImportQuestionsRequest, context: _Context
    ) -> pb.ImportQuestionsResponse:
        """Write a whole question set."""
        questions = [translate.question_value(each) for each in request.questions]
        dataset = await self._library.import_questions(request.dataset, questions, force=request.force)
        return pb.ImportQuestionsResponse(question_count=len(dataset.questions), sha256=dataset.sha256)

    async def ListDatasets(self, request: pb.ListDatasetsRequest, context: _Context) -> pb.ListDatasetsResponse:
        """List question sets."""
        page = await self._library.dataset_page(PageRequest(request.page_size, request.page_token))
        return pb.ListDatasetsResponse(
            datasets=[_dataset_message(each) for each in page.items], next_page_token=page.next_token
        )

    async def ListQuestions(self, request: pb.ListQuestionsRequest, context: _Context) -> pb.ListQuestionsResponse:
        """List a set's questions."""
        page = await self._library.question_page(
            request.dataset, PageRequest(request.page_size, request.page_token, **_LONG)
        )
        return pb.ListQuestionsResponse(
            questions=[translate.question_message(each) for each in page.items], next_page_token=page.next_token
        )

    async def BatchGetQuestions(
        self, request: pb.BatchGetQuestionsRequest, context: _Context
    ) -> pb.BatchGetQuestionsResponse:
        """Return the questions asked for."""
        questions = await self._library.questions(request.dataset, list(request.question_ids))
        return pb.BatchGetQuestionsResponse(questions=[translate.question_message(each) for each in questions])

    async def PutVideo(self, request: pb.PutVideoRequest, context: _Context) -> pb.PutVideoResponse:
        """Write a video's tree."""
        video = await self._library.put_video(request.video_id, request.tree_json, force=request.force)
        return pb.PutVideoResponse(video=translate.video_message(video))

    async def PutFrames(self, request: pb.PutFramesRequest, context: _Context) -> pb.PutFramesResponse:
        """Add frames to a video."""
        frames = [Frame(each.name, each.jpeg) for each in request.frames]
        video = await self._library.put_frames(request.video_id, frames)
        return pb.PutFramesResponse(video=translate.video_message(video))

    async def ListVideos(self, request: pb.ListVideosRequest, context: _Context) -> pb.ListVideosResponse:
        """List videos."""
        page = await self._library.video_page(PageRequest(request.page_size, request.page_token, **_LONG))
        return pb.ListVideosResponse(
            videos=[translate.video_message(each) for each in page.items], next_page_token=page.next_token
        )

    async def GetVideoTree(self, request: pb.GetVideoTreeRequest, context: _Context) -> pb.GetVideoTreeResponse:
        """Return tree.json as stored."""
        content, sha256 = await self._library.tree(request.video_id)
        return pb.GetVideoTreeResponse(tree_json=content, sha256=sha256)

    async def GetFrames(self, request: pb.GetFramesRequest, context: _Context) -> pb.GetFramesResponse:
        """Return frame images."""
        frames = await self._library.frames(request.video_id, list(request.names))
        return pb.GetFramesResponse(frames=[video_pb2.Frame(name=each.name, jpeg=each.jpeg) for each in frames])


def _dataset_message(dataset: Dataset) -> pb.Dataset:
    return pb.Dataset(dataset=dataset.name, question_count=len(dataset.questions), sha256=dataset.sha256)
