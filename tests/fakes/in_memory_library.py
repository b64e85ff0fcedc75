"""The library as an import writes it, in memory."""

import hashlib
from collections.abc import Sequence

from services.questions import Question, render_question_lines
from services.trainer.domain.errors import ServiceFailed
from services.video_tree import parse_tree


class InMemoryLibrary:
    """Checks what the store checks; `writes` names every write in order."""

    def __init__(self, videos: Sequence[str] = ()) -> None:
        self.trees: dict[str, bytes] = dict.fromkeys(videos, b"")
        self.datasets: dict[str, list[Question]] = {}
        self.frames: dict[str, dict[str, bytes]] = {}
        self.writes: list[str] = []

    async def video_ids(self) -> list[str]:
        """See LibraryWriter."""
        return sorted(self.trees)

    async def tree_fingerprints(self) -> dict[str, str]:
        """See LibraryWriter."""
        return {video_id: hashlib.sha256(tree).hexdigest() for video_id, tree in sorted(self.trees.items())}

    async def question_set_fingerprints(self) -> dict[str, str]:
        """See LibraryWriter."""
        return {
            dataset: hashlib.sha256(render_question_lines(questions)).hexdigest()
            for dataset, questions in self.datasets.items()
        }

    async def import_questions(self, dataset: str, questions: Sequence[Question], *, force: bool) -> int:
        """See LibraryWriter."""
        if self.datasets.get(dataset, list(questions)) != list(questions) and not force:
            raise ServiceFailed("store", "ALREADY_EXISTS", f"dataset {dataset} exists; use --force")
        self.datasets[dataset] = list(questions)
        self.writes.append(f"questions {dataset}")
        return len(questions)

    async def put_video(self, video_id: str, tree_json: bytes, *, force: bool) -> None:
        """See LibraryWriter."""
        assert parse_tree(tree_json).video_id == video_id
        if self.trees.get(video_id, tree_json) != tree_json and not force:
            raise ServiceFailed("store", "ALREADY_EXISTS", f"another tree of {video_id} is there; use --force")
        self.trees[video_id] = tree_json
        self.writes.append(f"video {video_id}")

    async def put_frames(self, video_id: str, frames: Sequence[tuple[str, bytes]]) -> None:
        """See LibraryWriter."""
        self.frames.setdefault(video_id, {}).update(frames)
