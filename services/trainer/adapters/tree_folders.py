"""A folder of videos as the library has them: `<video_id>/tree.json` and `<video_id>/frames/*.jpg`."""

import os
from collections.abc import Iterator
from pathlib import Path

from services.trainer.domain.importing.errors import UnreadableSource
from services.trainer.use_cases.import_ports import FrameFile

_TREE = "tree.json"
# ITU-T T.81, annex B: start of image followed by another marker, and end of image.
_JPEG_BEGINNING, _JPEG_END = b"\xff\xd8\xff", b"\xff\xd9"
_FRAMES_A_BATCH = 16
_BYTES_A_BATCH = 32 * 1024 * 1024


class TreeFolders:
    """The videos below a folder. Raises UnreadableSource where there is none, or a file can't be read."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise UnreadableSource(f"{path}: no such folder")
        self._path = path
        self._trees = {file.parent.name: file for file in sorted(path.glob(f"*/{_TREE}"))}
        if not self._trees:
            raise UnreadableSource(f"{path}: no <video_id>/{_TREE} lies below this folder")

    def video_ids(self) -> list[str]:
        """The videos in order of id."""
        return list(self._trees)

    def tree(self, video_id: str) -> bytes:
        """The `tree.json` of a video."""
        return _content(self._trees[video_id])

    def frames(self, video_id: str) -> list[FrameFile]:
        """Each frame of a video, without its content."""
        return [_frame_file(file) for file in self._frame_files(video_id)]

    def frame_batches(self, video_id: str) -> Iterator[list[tuple[str, bytes]]]:
        """The frames of a video as (name, JPEG bytes), in batches that fit a message."""
        batch: list[tuple[str, bytes]] = []
        size = 0
        for file in self._frame_files(video_id):
            content = _content(file)
            if batch and (len(batch) == _FRAMES_A_BATCH or size + len(content) > _BYTES_A_BATCH):
                yield batch
                batch, size = [], 0
            batch.append((file.stem, content))
            size += len(content)
        if batch:
            yield batch

    def _frame_files(self, video_id: str) -> list[Path]:
        return sorted((self._trees[video_id].parent / "frames").glob("*.jpg"))


def _frame_file(path: Path) -> FrameFile:
    try:
        with path.open("rb") as file:
            begins = file.read(len(_JPEG_BEGINNING)) == _JPEG_BEGINNING
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - len(_JPEG_END)))
            ends = file.read() == _JPEG_END
    except OSError as error:
        raise UnreadableSource(f"{path}: {error.strerror or error}") from error
    return FrameFile(path.stem, size, begins and ends)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableSource(f"{path}: {error.strerror or error}") from error
