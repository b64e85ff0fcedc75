"""Captions of many videos: a ZIP or a folder of `<video>_cap.json` (or `<video>.json`)."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from services.trainer.domain.importing.errors import UnreadableSource
from services.trainer.use_cases.import_ports import Captions

_SUFFIX = "_cap"
_LARGEST_FILE_BYTES = 64 * 1024 * 1024
# The library passes on what fails inside it: damaged data, a method it doesn't know, fields that disagree.
_NO_ZIP = (OSError, EOFError, NotImplementedError, ValueError, struct.error, zipfile.BadZipFile, zlib.error)


@contextmanager
def open_captions(path: Path) -> Iterator[Captions]:
    """The archive at `path`, a ZIP or a folder. Raises UnreadableSource."""
    if path.is_dir():
        yield _Folder(path)
        return
    try:
        archive = zipfile.ZipFile(path)
    except _NO_ZIP as error:
        raise UnreadableSource(f"{path}: neither a folder nor a ZIP of captions ({error})") from error
    with archive:
        yield _Zip(path, archive)


def _video_id(stem: str) -> str:
    return stem.removesuffix(_SUFFIX)


class _Folder:
    def __init__(self, path: Path) -> None:
        self._files = {_video_id(file.stem): file for file in sorted(path.rglob("*.json"))}

    def video_ids(self) -> frozenset[str]:
        return frozenset(self._files)

    def read(self, video_id: str) -> bytes:
        try:
            return self._files[video_id].read_bytes()
        except OSError as error:
            raise UnreadableSource(f"{self._files[video_id]}: {error.strerror or error}") from error


class _Zip:
    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path = path
        self._archive = archive
        members = (PurePosixPath(name) for name in archive.namelist())
        self._members = {
            _video_id(member.stem): str(member)
            for member in members
            if member.suffix == ".json" and "__MACOSX" not in member.parts
        }

    def video_ids(self) -> frozenset[str]:
        return frozenset(self._members)

    def read(self, video_id: str) -> bytes:
        member = self._members[video_id]
        try:
            if self._archive.getinfo(member).file_size > _LARGEST_FILE_BYTES:
                raise UnreadableSource(f"{self._path}: {member} is larger than {_LARGEST_FILE_BYTES} bytes")
            return self._archive.read(member)
        except (*_NO_ZIP, RuntimeError) as error:
            raise UnreadableSource(f"{self._path}: {member}: {error}") from error
