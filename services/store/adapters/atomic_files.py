"""The one place where the store writes files (STO-2).

A file is written to a temporary sibling, flushed, fsynced and moved over the old one; then the folder is fsynced. A
folder is built as a hidden sibling and renamed. A crash at any instruction leaves the old content or the new one. Names
of unfinished work begin with `.tmp-`, and `remove_leftovers` deletes them at the next start.

Files that are added to a folder gather in a hidden sibling, which is renamed to `.add-<folder>` once it is complete.
From then on all of them count: `finish_additions` moves in at the next start what a crash left there.

A folder that replaces another waits beside it as `.new-<folder>`. Once the old one is renamed away the new one counts,
and `finish_replacements` installs it at the next start.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from services.store.adapters.file_operations import FileOperations, SystemFileOperations

TEMPORARY_PREFIX = ".tmp-"
ADDITION_PREFIX = ".add-"
REPLACEMENT_PREFIX = ".new-"


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

    def add_files(self, folder: Path, files: Mapping[str, bytes]) -> None:
        """Write files into `folder` beside those that stand there, all or none.

        Raises OSError: then none of them is there, or, once all were on the disk, the next addition or start moves
        them in.
        """
        self.make_folder(folder)
        complete = folder.parent / f"{ADDITION_PREFIX}{folder.name}"
        if complete.exists():
            self._move_in(complete)
        building = _temporary_sibling(folder)
        try:
            self._build(building, files)
            self._operations.replace(building, complete)
        except OSError:
            shutil.rmtree(building, ignore_errors=True)
            raise
        self._operations.fsync_folder(folder.parent)
        self._move_in(complete)

    def finish_additions(self, root: Path) -> list[Path]:
        """Move in the files of additions that were complete when they were interrupted; returns their folders."""
        complete = sorted(root.rglob(f"{ADDITION_PREFIX}*/"))
        for addition in complete:
            self._move_in(addition)
        return complete

    def install_folder(self, building: Path, path: Path) -> None:
        """Rename a finished hidden folder into place, also in place of another one, and make the rename durable.

        Raises OSError: then the old folder stands there, or the next start installs the new one.
        """
        if path.exists():
            self._exchange(building, path)
            return
        self._operations.replace(building, path)
        self._operations.fsync_folder(path.parent)

    def finish_replacements(self, root: Path) -> list[Path]:
        """Install the folders whose old one was gone when their replacement was interrupted, drop those whose is not.

        Returns the folders that were installed. To be called before `remove_leftovers`.
        """
        installed = []
        for complete in sorted(root.rglob(f"{REPLACEMENT_PREFIX}*/")):
            path = complete.parent / complete.name.removeprefix(REPLACEMENT_PREFIX)
            if path.exists():
                self.remove(complete)
            else:
                self._operations.replace(complete, path)
                self._operations.fsync_folder(path.parent)
                installed.append(path)
        return installed

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

    def _exchange(self, building: Path, path: Path) -> None:
        complete, doomed = path.parent / f"{REPLACEMENT_PREFIX}{path.name}", _temporary_sibling(path)
        self.remove(complete)
        self._operations.replace(building, complete)
        try:
            self._operations.fsync_folder(path.parent)
            self._operations.replace(path, doomed)  # from here on the new folder counts
            self._operations.replace(complete, path)
        except OSError:
            if doomed.exists():
                doomed.rename(path)
            shutil.rmtree(complete)
            raise
        self._operations.fsync_folder(path.parent)
        shutil.rmtree(doomed)

    def _move_in(self, complete: Path) -> None:
        folder = complete.parent / complete.name.removeprefix(ADDITION_PREFIX)
        for path in sorted(complete.iterdir()):
            self._operations.replace(path, folder / path.name)
        self._operations.fsync_folder(folder)
        complete.rmdir()

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
