"""The library as an import writes it, in memory."""

from collections.abc import Sequence

from services.questions import Question
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

    async def import_questions(self, dataset: str, questions: Sequence[Question], *, force: bool) -> int:
        """See LibraryWriter."""
        if dataset in self.datasets and not force:
            raise ServiceFailed("store", "ALREADY_EXISTS", f"dataset {dataset} exists; use --force")
        self.datasets[dataset] = list(questions)
        self.writes.append(f"questions {dataset}")
        return len(questions)

    async def put_video(self, video_id: str, tree_json: bytes, *, force: bool) -> None:
        """See LibraryWriter."""
        assert parse_tree(tree_json).video_id == video_id
        self.trees[video_id] = tree_json
        self.writes.append(f"video {video_id}")

    async def put_frames(self, video_id: str, frames: Sequence[tuple[str, bytes]]) -> None:
        """See LibraryWriter."""
        self.frames.setdefault(video_id, {}).update(frames)
