"""One store process per data root: an exclusive lock file that names its owner (STO-1)."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from services.store.domain.errors import DataRootInUse

LOCK_NAME = ".store.lock"


class DataRootLock:
    """Holds the data root until released; the operating system releases it when the process dies."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock or raise DataRootInUse at once, naming the root and the owner's pid."""
        self._root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._root / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise DataRootInUse(str(self._root.resolve()), owner) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the data root free; releasing twice is no error."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> DataRootLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
