"""What an import needs from the outside. Methods of the library raise ServiceFailed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from services.questions import Fault, Question

Advance: TypeAlias = Callable[[int, int], None]
"""Told of videos done and of all videos."""


def no_progress(done: int, total: int) -> None:
    """Tells nobody."""


class LibraryWriter(Protocol):
    """Writes the library; every write is atomic, and repeating one with equal content changes nothing."""

    async def video_ids(self) -> list[str]:
        """The ids of all videos."""
        ...

    async def tree_fingerprints(self) -> dict[str, str]:
        """The hex SHA-256 of each video's `tree.json`, by video id."""
        ...

    async def question_set_fingerprints(self) -> dict[str, str]:
        """The hex SHA-256 of each question set's file, by name."""
        ...

    async def import_questions(self, dataset: str, questions: Sequence[Question], *, force: bool) -> int:
        """Writes a whole question set; other content under the same name is refused without force."""
        ...

    async def put_video(self, video_id: str, tree_json: bytes, *, force: bool) -> None:
        """Writes a video's tree; another tree is refused without force."""
        ...

    async def put_frames(self, video_id: str, frames: Sequence[tuple[str, bytes]]) -> None:
        """Adds frames (name, JPEG bytes)."""
        ...


class Captions(Protocol):
    """Captions by video id; `read` raises UnreadableSource."""

    def video_ids(self) -> frozenset[str]:
        """The videos that have captions."""
        ...

    def read(self, video_id: str) -> bytes:
        """The JSON file of a video's captions."""
        ...


@dataclass(frozen=True, slots=True)
class FrameFile:
    """A frame to import; `is_whole` says that it begins and ends as a JPEG picture does."""

    name: str
    size_bytes: int
    is_whole: bool


class Trees(Protocol):
    """Videos to import, by id; methods raise UnreadableSource."""

    def video_ids(self) -> list[str]:
        """The videos in order of id."""
        ...

    def tree(self, video_id: str) -> bytes:
        """The `tree.json` of a video."""
        ...

    def frames(self, video_id: str) -> list[FrameFile]:
        """Each frame of a video, without its content."""
        ...

    def frame_batches(self, video_id: str) -> Iterator[list[tuple[str, bytes]]]:
        """The frames as (name, JPEG bytes), in batches that fit a message."""
        ...


class Summariser(Protocol):
    """Writes a summary of descriptions in words of its own."""

    async def summary(self, time: str, descriptions: Sequence[str], most_chars: int) -> str:
        """At most about `most_chars` long; `time` is the part's time range. Raises ServiceFailed."""
        ...


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did; `left_out` are the faults of what it left out."""

    question_count: int
    video_count: int
    left_out: tuple[Fault, ...] = ()
