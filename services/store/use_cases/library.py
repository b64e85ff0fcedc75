"""The library that every workspace shares: question sets, video trees and frames."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from services.questions import (
    ParsedQuestions,
    PlacedRecord,
    Question,
    check_records,
    parse_question_lines,
    question_to_record,
    render_question_lines,
)
from services.store.domain.errors import AlreadyExists, InvalidRequest, NotFound, PreconditionFailed
from services.store.domain.fingerprints import sha256_hex
from services.store.domain.frames import require_jpeg
from services.store.domain.names import component, lower_component
from services.store.use_cases.paging import Page, PageRequest, indexed_page, name_page
from services.store.use_cases.ports import Folder
from services.store.use_cases.standing_answers import StandingAnswers
from services.video_tree import TreeFault, parse_tree

MAX_FRAMES_A_CALL = 16
MAX_IDS_A_CALL = 10_000
TREE_FILE = "tree.json"
_QUESTIONS = "questions"
_VIDEOS = "videos"
_FRAMES = "frames"
_FRAME_SUFFIX = ".jpg"
_SUFFIX = ".jsonl"
_DATASETS_KEPT = 8


@dataclass(frozen=True, slots=True)
class Dataset:
    """A question set; `sha256` is that of its file."""

    name: str
    questions: tuple[Question, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class Video:
    """A video of the library."""

    video_id: str
    tree_sha256: str
    node_count: int
    frame_count: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One key frame: the node id without the video prefix, and JPEG bytes."""

    name: str
    jpeg: bytes


class Library:
    """Question sets and videos; what was read is kept, since nobody else writes the files."""

    def __init__(self, files: Folder, answers: StandingAnswers) -> None:
        self._files = files
        self._answers = answers
        self._datasets: OrderedDict[str, Dataset] = OrderedDict()
        self._trees: dict[str, tuple[str, int]] = {}
        self._writing = asyncio.Lock()

    async def import_questions(self, dataset: str, questions: Sequence[Question], *, force: bool) -> Dataset:
        """Write a whole question set, all or nothing; the same content again is a no-op.

        Raises InvalidRequest naming the first faulty question, AlreadyExists for other content without force, and
        PreconditionFailed where answers are kept to a question that would change or vanish.
        """
        lower_component(dataset, "dataset")
        checked = await asyncio.to_thread(_checked, questions)
        if checked.faults:
            listed = "; ".join(str(fault) for fault in checked.faults[:5])
            raise InvalidRequest(f"{len(checked.faults)} faults: {listed}", field=checked.faults[0].place)
        if not checked.questions:
            raise InvalidRequest("a question set needs at least one question", field="questions")
        content = await asyncio.to_thread(render_question_lines, checked.questions)
        async with self._writing:
            if force and await self.has_dataset(dataset):
                await self._answers.require_none_to_questions(
                    dataset, _changed((await self.dataset(dataset)).questions, checked.questions)
                )
            await asyncio.to_thread(self._replace, f"{_QUESTIONS}/{dataset}{_SUFFIX}", content, dataset, force)
            return self._keep(Dataset(dataset, checked.questions, sha256_hex(content)))

    async def has_dataset(self, dataset: str) -> bool:
        """Return whether a question set of this name exists; False for a name that can't be one."""
        return dataset in await self._dataset_names()

    async def dataset(self, dataset: str) -> Dataset:
        """Return a question set; raises NotFound."""
        lower_component(dataset, "dataset")
        if dataset in self._datasets:
            self._datasets.move_to_end(dataset)
            return self._datasets[dataset]
        content = await asyncio.to_thread(self._files.read, f"{_QUESTIONS}/{dataset}{_SUFFIX}")
        if content is None:
            raise NotFound("question set", dataset, field="dataset")
        parsed = await asyncio.to_thread(parse_question_lines, content)
        if parsed.faults:
            raise PreconditionFailed(f"question set {dataset!r} was changed on disk: {parsed.faults[0]}")
        return self._keep(Dataset(dataset, parsed.questions, sha256_hex(content)))

    async def dataset_page(self, request: PageRequest) -> Page[Dataset]:
        """Return question sets in ascending order of name."""
        names = name_page("datasets", await self._dataset_names(), request)
        return Page([await self.dataset(name) for name in names.items], names.next_token)

    async def question_page(self, dataset: str, request: PageRequest) -> Page[Question]:
        """Return a set's questions in file order; a token of other content of the set is refused."""
        found = await self.dataset(dataset)
        return indexed_page(f"questions {dataset} {found.sha256}", found.questions, request)

    async def questions(self, dataset: str, question_ids: Sequence[str]) -> list[Question]:
        """Return questions in the order asked; raises NotFound naming up to five that are missing."""
        if not 1 <= len(question_ids) <= MAX_IDS_A_CALL:
            raise InvalidRequest(f"ask for 1 to {MAX_IDS_A_CALL} questions", field="question_ids")
        by_id = {question.question_id: question for question in (await self.dataset(dataset)).questions}
        missing = [each for each in question_ids if each not in by_id]
        if missing:
            raise NotFound(f"question of {dataset}", ", ".join(missing[:5]), field="question_ids")
        return [by_id[each] for each in question_ids]

    async def put_video(self, video_id: str, tree_json: bytes, *, force: bool) -> Video:
        """Write a video's tree; identical content is a no-op.

        Raises InvalidRequest, AlreadyExists without force, and PreconditionFailed where answers about the video are
        kept.
        """
        component(video_id, "video_id")
        await asyncio.to_thread(_checked_node_count, video_id, tree_json)
        path = f"{_VIDEOS}/{video_id}/{TREE_FILE}"
        async with self._writing:
            if force and await asyncio.to_thread(self._files.read, path) not in (None, tree_json):
                await self._answers.require_none_about_video(video_id)
            await asyncio.to_thread(self._replace, path, tree_json, video_id, force)
            self._trees.pop(video_id, None)
        return await self._video(video_id)

    async def put_frames(self, video_id: str, frames: Sequence[Frame]) -> Video:
        """Add frames to a video, replacing those of the same names, all or none.

        Raises NotFound, InvalidRequest naming the first frame that is none.
        """
        if not frames:
            raise InvalidRequest("no frame given", field="frames")
        for at, frame in enumerate(frames):
            component(frame.name, f"frames[{at}].name")
            require_jpeg(frame.jpeg, f"frames[{at}].jpeg")
        await self._video(component(video_id, "video_id"))
        files = {f"{frame.name}{_FRAME_SUFFIX}": frame.jpeg for frame in frames}
        async with self._writing:
            await asyncio.to_thread(self._files.add, f"{_VIDEOS}/{video_id}/{_FRAMES}", files)
        return await self._video(video_id)

    async def video_page(self, request: PageRequest) -> Page[Video]:
        """Return videos in ascending order of id; a page may hold fewer than asked."""
        names = name_page("videos", await asyncio.to_thread(self._files.names, _VIDEOS), request)
        found = [await self._video_or_none(name) for name in names.items]
        return Page([video for video in found if video is not None], names.next_token)

    async def tree(self, video_id: str) -> tuple[bytes, str]:
        """Return tree.json as stored and its SHA-256; raises NotFound."""
        component(video_id, "video_id")
        content = await asyncio.to_thread(self._files.read, f"{_VIDEOS}/{video_id}/{TREE_FILE}")
        if content is None:
            raise NotFound("video", video_id, field="video_id")
        return content, sha256_hex(content)

    async def frames(self, video_id: str, names: Sequence[str]) -> list[Frame]:
        """Return frames in the order asked; raises NotFound naming those that are missing."""
        if not 1 <= len(names) <= MAX_FRAMES_A_CALL:
            raise InvalidRequest(f"ask for 1 to {MAX_FRAMES_A_CALL} frames", field="names")
        for at, name in enumerate(names):
            component(name, f"names[{at}]")
        await self._video(component(video_id, "video_id"))
        found = [await asyncio.to_thread(self._files.read, _frame_path(video_id, name)) for name in names]
        missing = [name for name, jpeg in zip(names, found, strict=True) if jpeg is None]
        if missing:
            raise NotFound(f"frame of video {video_id}", ", ".join(missing), field="names")
        return [Frame(name, jpeg or b"") for name, jpeg in zip(names, found, strict=True)]

    async def _dataset_names(self) -> list[str]:
        names = await asyncio.to_thread(self._files.names, _QUESTIONS)
        return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))

    async def _video_or_none(self, video_id: str) -> Video | None:
        """None for a folder without a tree, which an interrupted first import leaves."""
        try:
            return await self._video(video_id)
        except NotFound:
            return None

    async def _video(self, video_id: str) -> Video:
        if video_id not in self._trees:
            content, sha256 = await self.tree(video_id)
            self._trees[video_id] = (sha256, await asyncio.to_thread(_checked_node_count, video_id, content))
        sha256, node_count = self._trees[video_id]
        frames = await asyncio.to_thread(self._files.names, f"{_VIDEOS}/{video_id}/{_FRAMES}")
        return Video(video_id, sha256, node_count, len(frames))

    def _replace(self, path: str, content: bytes, name: str, force: bool) -> None:
        existing = self._files.read(path)
        if existing == content:
            return
        if existing is not None and not force:
            raise AlreadyExists(f"{name!r} is in the library with other content; replace it with force")
        self._files.write(path, content)

    def _keep(self, dataset: Dataset) -> Dataset:
        self._datasets[dataset.name] = dataset
        self._datasets.move_to_end(dataset.name)
        while len(self._datasets) > _DATASETS_KEPT:
            self._datasets.popitem(last=False)
        return dataset


def _checked(questions: Sequence[Question]) -> ParsedQuestions:
    return check_records(
        PlacedRecord(f"questions[{at}]", question_to_record(each)) for at, each in enumerate(questions)
    )


def _changed(old: Sequence[Question], new: Sequence[Question]) -> list[str]:
    """The ids whose question is another one in `new`, or is missing there."""
    now = {question.question_id: question for question in new}
    return [question.question_id for question in old if now.get(question.question_id) != question]


def _frame_path(video_id: str, name: str) -> str:
    return f"{_VIDEOS}/{video_id}/{_FRAMES}/{name}{_FRAME_SUFFIX}"


def _checked_node_count(video_id: str, tree_json: bytes) -> int:
    try:
        tree = parse_tree(tree_json)
    except TreeFault as fault:
        raise InvalidRequest(f"tree_json of video {video_id!r}: {fault}", field="tree_json") from fault
    if tree.video_id != video_id:
        raise InvalidRequest(f"tree_json is of video {tree.video_id!r}, not {video_id!r}", field="tree_json")
    return len(tree.nodes)
