"""The library of videos and questions over the store's gRPC."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from videotree.store.v1 import library_service_pb2 as pb
from videotree.store.v1 import library_service_pb2_grpc, question_pb2

from services.questions import Question
from services.trainer.adapters.calls import Caller
from services.trainer.adapters.messages import from_message, to_message
from services.trainer.domain.pools import Dataset

_IMPORT_TIMEOUT_SECONDS = 600.0


class StoreLibrary:
    """The `Library` port."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub, self._caller = library_service_pb2_grpc.LibraryServiceStub(channel), caller

    async def datasets(self) -> list[Dataset]:
        """All question sets by name."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(self._stub.ListDatasets, pb.ListDatasetsRequest(page_token=token))
        )
        return [from_message(each, Dataset) async for page in pages for each in page.datasets]

    async def questions(self, dataset: str) -> list[Question]:
        """A set's questions in file order."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListQuestions, pb.ListQuestionsRequest(dataset=dataset, page_size=10_000, page_token=token)
            )
        )
        return [from_message(each, Question) async for page in pages for each in page.questions]

    async def import_questions(self, dataset: str, questions: Sequence[Question], *, force: bool) -> int:
        """Writes a whole question set; returns how many questions it holds."""
        request = pb.ImportQuestionsRequest(
            dataset=dataset, questions=[to_message(each, question_pb2.Question) for each in questions], force=force
        )
        answer = await self._caller.unary(self._stub.ImportQuestions, request, _IMPORT_TIMEOUT_SECONDS)
        return answer.question_count

    async def put_video(self, video_id: str, tree_json: bytes, *, force: bool) -> None:
        """Writes a video's tree."""
        await self._caller.unary(
            self._stub.PutVideo, pb.PutVideoRequest(video_id=video_id, tree_json=tree_json, force=force)
        )

    async def put_frames(self, video_id: str, frames: Sequence[tuple[str, bytes]]) -> None:
        """Adds frames (name, JPEG bytes) to a video."""
        request = pb.PutFramesRequest(video_id=video_id)
        for name, jpeg in frames:
            request.frames.add(name=name, jpeg=jpeg)
        await self._caller.unary(self._stub.PutFrames, request, _IMPORT_TIMEOUT_SECONDS)

    async def video_ids(self) -> list[str]:
        """The ids of all videos, in ascending order."""
        return list(await self.tree_fingerprints())

    async def tree_fingerprints(self) -> dict[str, str]:
        """The hex SHA-256 of each video's tree, by video id in ascending order."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListVideos, pb.ListVideosRequest(page_size=10_000, page_token=token)
            )
        )
        return {each.video_id: each.tree_sha256 async for page in pages for each in page.videos}

    async def question_set_fingerprints(self) -> dict[str, str]:
        """The hex SHA-256 of each question set's file, by name."""
        return {each.dataset: each.sha256 for each in await self.datasets()}
