"""What answering questions needs from outside."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from services.inference.domain.chat import CallOrigin
from services.inference.domain.prediction import AnswerRecord
from services.inference.use_cases.ports import NO_ORIGIN
from services.questions import Question
from services.video_tree import Node, VideoTree


class VersionKind(StrEnum):
    """What a version is a version of."""

    SKILLS = "skills"
    PROMPTS = "prompts"


class VideoUnusable(Exception):
    """The store has no tree for a video, or a faulty one; concerns one question, never the batch."""


class FramesMissing(Exception):
    """The store lacks frames of a video; `names` lists them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        super().__init__(f"no frames are stored for {', '.join(self.names)}")


@dataclass(frozen=True, slots=True)
class LoadedTree:
    """A checked tree with the fingerprint of its file, which is all that two of them are compared and kept by."""

    tree: VideoTree = field(compare=False)
    sha256: str


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer of the stream: the record as the store holds it, and whether it stood there before this call."""

    record: AnswerRecord
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A node found by a search; a higher score is better, scales differ between searches."""

    node: Node
    score: float


class Library(Protocol):
    """Reads what a workspace answers with. All methods raise StoreUnavailable where the store is away."""

    async def questions(self, dataset: str, question_ids: Sequence[str]) -> list[Question]:
        """The questions in the order asked. Raises NotFound naming missing ones."""
        ...

    async def version(self, workspace: str, kind: VersionKind, version: str) -> Mapping[str, str]:
        """File name -> text of a published version. Raises NotFound."""
        ...

    async def tree(self, video_id: str) -> LoadedTree:
        """A video's tree, checked. Raises VideoUnusable."""
        ...

    async def frames(self, video_id: str, names: Sequence[str]) -> list[bytes]:
        """JPEG files in the order asked, 1 to 16. Raises FramesMissing."""
        ...


class AnswerLog(Protocol):
    """Where answers become durable. Methods raise StoreUnavailable where the store is away."""

    async def append(self, workspace: str, record: AnswerRecord) -> None:
        """Writes the prediction and its whole trace, replacing older ones of the same run and question.

        When it returns both are durable; repeating it changes nothing. Raises RecordRefused or NotFound.
        """
        ...

    async def answered(self, workspace: str, run_id: str, questions: Collection[Question]) -> list[AnswerRecord]:
        """The records of this run for these questions that are not INFRA, without transcripts. Raises NotFound."""
        ...


class NodeSearch(Protocol):
    """Finds the nodes of a tree whose text is closest to a query."""

    async def search(self, loaded: LoadedTree, query: str, most: int, *, origin: CallOrigin = NO_ORIGIN) -> list[Hit]:
        """At most `most` nodes, best first, none twice; empty where nothing matches. Deterministic.

        Model calls, where it makes any, are recorded as made for `origin`.
        """
        ...
