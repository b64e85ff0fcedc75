"""The port Folder on the file system."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from services.store.adapters.atomic_files import AtomicFiles
from services.store.domain.errors import StorageFailed
from services.store.use_cases.ports import Folder


class DiskFolder:
    """A folder of the data root; every write goes through AtomicFiles."""

    def __init__(self, path: Path, files: AtomicFiles) -> None:
        self._path = path
        self._files = files

    @property
    def path(self) -> str:
        """The absolute path, for people."""
        return str(self._path.absolute())

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is no such file."""
        try:
            return (self._path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file so that old or new content survives a crash."""
        try:
            self._files.write_file(self._path / name, content)
        except OSError as error:
            raise StorageFailed(f"{name} could not be written: {error.strerror or error}") from error

    def publish(self, name: str, files: Mapping[str, bytes]) -> None:
        """Make a whole subfolder appear at once."""
        try:
            self._files.publish_folder(self._path / name, files)
        except OSError as error:
            raise StorageFailed(f"{name} could not be published: {error.strerror or error}") from error

    def add(self, name: str, files: Mapping[str, bytes]) -> None:
        """Write files into a subfolder beside those that stand there, all or none."""
        try:
            self._files.add_files(self._path / name, files)
        except OSError as error:
            raise StorageFailed(f"{name} could not be added to: {error.strerror or error}") from error

    def names(self, name: str = "") -> list[str]:
        """Return the names in a subfolder in ascending order, hidden ones left out."""
        folder = self._path / name
        return (
            sorted(each.name for each in folder.iterdir() if not each.name.startswith(".")) if folder.is_dir() else []
        )

    def remove(self, name: str) -> None:
        """Remove a file or subfolder; missing is no error."""
        try:
            self._files.remove(self._path / name)
        except OSError as error:
            raise StorageFailed(f"{name} could not be removed: {error.strerror or error}") from error

    def sub(self, name: str) -> Folder:
        """Return a subfolder, which need not exist yet."""
        return DiskFolder(self._path / name, self._files)
