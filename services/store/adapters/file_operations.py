"""The steps at which a write of the store can be interrupted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Protocol


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
