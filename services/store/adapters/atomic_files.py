"""The one place where the store writes files (STO-2).

A file is written to a temporary sibling, flushed, fsynced and moved over the old one; then the folder is fsynced. A
folder is built as a hidden sibling and renamed. A crash at any instruction leaves the old content or the new one. Names
of unfinished work begin with `.tmp-`, and `remove_leftovers` deletes them at the next start.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Protocol

TEMPORARY_PREFIX = ".tmp-"


class FileOperations(Protocol):
    """The five steps at which a write can be interrupted; tests replace them one by one."""

    def write(self, handle: BinaryIO, data: bytes) -> None:
        """Hand the data to the buffered file."""

    def flush(self, handle: BinaryIO) -> None:
        """Hand the buffer to the operating system."""

    def fsync(self, handle: BinaryIO) -> None:
        """Force the file's content to the disk."""

    def replace(self, source: Path, target: Path) -> None:
        """Move `source` over `target` in one step."""

    def fsync_folder(self, folder: Path) -> None:
        """Force the folder's entries to the disk."""


class SystemFileOperations:
    """The operating system's own."""

    def write(self, handle: BinaryIO, data: bytes) -> None:
        """Hand the data to the buffered file."""
        handle.write(data)

    def flush(self, handle: BinaryIO) -> None:
        """Hand the buffer to the operating system."""
        handle.flush()

    def fsync(self, handle: BinaryIO) -> None:
        """Force the file's content to the disk."""
        os.fsync(handle.fileno())

    def replace(self, source: Path, target: Path) -> None:
        """Move `source` over `target` in one step."""
        source.replace(target)

    def fsync_folder(self, folder: Path) -> None:
        """Force the folder's entries to the disk."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class AtomicFiles:
    """Writes files and folders so that a reader, now or after a crash, sees all of them or none."""

    def __init__(self, operations: FileOperations | None = None) -> None:
        self._operations = operations or SystemFileOperations()

    def write_file(self, path: Path, data: bytes) -> None:
        """Make `data` the content of `path`; raises OSError, after which the old content or the new stands there."""
        self.make_folder(path.parent)
        temporary = _temporary_sibling(path)
        try:
            self._write_durably(temporary, data)
            self._operations.replace(temporary, path)
            self._operations.fsync_folder(path.parent)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def publish_folder(self, path: Path, files: Mapping[str, bytes]) -> None:
        """Make a new folder `path` with these files (names may hold `/`); raises OSError, then nothing is visible.

        The caller vouches that `path` is not published yet: what stands there is unfinished work and is removed.
        """
        self.make_folder(path.parent)
        building = _temporary_sibling(path)
        try:
            self._build(building, files)
            self.install_folder(building, path)
        except OSError:
            shutil.rmtree(building, ignore_errors=True)
            raise

    def install_folder(self, building: Path, path: Path) -> None:
        """Rename a finished hidden folder into place and make the rename durable."""
        if path.exists():
            self.remove(path)
        self._operations.replace(building, path)
        self._operations.fsync_folder(path.parent)

    def sync_tree(self, folder: Path) -> None:
        """Force a folder that another program filled (a database copy) to the disk, deepest entries first."""
        for entry in folder.iterdir():
            if entry.is_dir():
                self.sync_tree(entry)
            else:
                with entry.open("rb") as handle:
                    self._operations.fsync(handle)
        self._operations.fsync_folder(folder)

    def copy_folder(self, source: Path, target: Path) -> None:
        """Copy a folder, without unfinished work, into a hidden one; `sync_tree` then makes it durable."""
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(f"{TEMPORARY_PREFIX}*"))

    def make_folder(self, folder: Path) -> None:
        """Make a folder and its parents, each durable in its own parent."""
        if folder.is_dir():
            return
        self.make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        self._operations.fsync_folder(folder.parent)

    def hidden_folder(self, path: Path) -> Path:
        """Make and return a new hidden sibling of `path`, to be filled and then installed in its place."""
        self.make_folder(path.parent)
        building = _temporary_sibling(path)
        building.mkdir()
        return building

    def remove(self, path: Path) -> None:
        """Remove a file or folder; it disappears under its name in one step, missing is no error."""
        if not path.exists():
            return
        doomed = _temporary_sibling(path)
        self._operations.replace(path, doomed)
        if doomed.is_dir():
            shutil.rmtree(doomed)
        else:
            doomed.unlink()
        self._operations.fsync_folder(path.parent)

    def _build(self, building: Path, files: Mapping[str, bytes]) -> None:
        building.mkdir()
        folders = {building}
        for name, data in files.items():
            target = building / name
            target.parent.mkdir(parents=True, exist_ok=True)
            folders.update(parent for parent in target.parents if parent.is_relative_to(building))
            self._write_durably(target, data)
        for folder in sorted(folders, key=lambda each: len(each.parts), reverse=True):
            self._operations.fsync_folder(folder)

    def _write_durably(self, path: Path, data: bytes) -> None:
        with path.open("xb") as handle:
            self._operations.write(handle, data)
            self._operations.flush(handle)
            self._operations.fsync(handle)


def remove_leftovers(root: Path) -> list[Path]:
    """Delete what interrupted writes left under `root`; returns the paths that were removed."""
    removed = list(_leftovers(root))
    for path in removed:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return removed


def _leftovers(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(TEMPORARY_PREFIX):
            yield entry
        elif entry.is_dir() and not entry.is_symlink():
            yield from _leftovers(entry)


def _temporary_sibling(path: Path) -> Path:
    return path.parent / f"{TEMPORARY_PREFIX}{path.name}-{secrets.token_hex(6)}"
