"""The steps of the store's file writes, each of which can be broken: by an error, by a death, by a loss of power."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, NoReturn

from services.store.adapters.file_operations import SystemFileOperations


class Way(StrEnum):
    """What happens at a step."""

    ERROR = "the step fails"
    FULL_DISK = "half is written, then the disk is full"
    HALF_THEN_DEATH = "half is written, then the process dies"
    DEATH_BEFORE = "the process dies before the step"
    DEATH_AFTER = "the process dies after the step"
    POWER_CUT = "the power goes before the step"


ONLY_WRITES = frozenset({Way.FULL_DISK, Way.HALF_THEN_DEATH})


class Died(BaseException):
    """Stands for the end of the process: nothing after it runs, no clean-up either."""


def kill_this_process() -> NoReturn:
    """`kill -9` of the process itself."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def raise_died() -> NoReturn:
    """Raise Died, where the process has to live on."""
    raise Died


class LossyDisk:
    """What a loss of power takes: half of each file that was not forced to the disk, and the renames in folders that
    were not.

    Removals and new folders are kept, and so is what SQLite writes: it forces its files itself. `aside` is a folder
    on the same disk for what was renamed over.
    """

    def __init__(self, aside: Path) -> None:
        self._aside = aside
        self._unforced: set[Path] = set()
        self._renames: list[tuple[Path, Path, Path | None]] = []
        self._kept_count = 0

    def wrote(self, path: Path) -> None:
        """The file has content that only the operating system knows of."""
        self._unforced.add(path)

    def forced(self, path: Path) -> None:
        """The file is on the disk."""
        self._unforced.discard(path)

    def will_rename(self, source: Path, target: Path) -> None:
        """Keep what stands at the target, since the disk keeps it too."""
        kept = None
        if target.is_file():
            self._kept_count += 1
            kept = self._aside / str(self._kept_count)
            os.link(target, kept)
        self._renames.append((source, target, kept))
        moved = {path for path in self._unforced if path.is_relative_to(source)}
        self._unforced -= moved
        self._unforced |= {target / path.relative_to(source) for path in moved}

    def forced_folder(self, folder: Path) -> None:
        """The renames into the folder are on the disk."""
        self._renames = [each for each in self._renames if each[1].parent != folder]

    def lose(self) -> None:
        """Make the files what a machine would find that starts again."""
        for path in self._unforced:
            if path.exists():
                os.truncate(path, path.stat().st_size // 2)
        for source, target, kept in reversed(self._renames):
            if target.exists() and not source.exists() and source.parent.is_dir():
                target.rename(source)
            if kept is not None:
                shutil.copyfile(kept, target)


class BreakableOperations(SystemFileOperations):
    """Counts steps into `steps`, and breaks the one with number `at`, from 1; 0 breaks none.

    Nothing is counted until `armed`. `die` ends the process, or raises Died. With a `disk`, POWER_CUT is possible,
    and `cut_power` does it at any time.
    """

    def __init__(
        self,
        at: int = 0,
        way: Way = Way.ERROR,
        *,
        die: Callable[[], NoReturn] = kill_this_process,
        disk: LossyDisk | None = None,
        armed: bool = True,
    ) -> None:
        self._at = at
        self._way = way
        self._die = die
        self._disk = disk
        self.armed = armed
        self.steps: list[str] = []

    def arm(self, at: int) -> None:
        """From now on count anew, and break step number `at`."""
        self._at, self.steps, self.armed = at, [], True

    def write(self, handle: BinaryIO, data: bytes) -> None:
        """See FileOperations."""
        if self._is_broken("write") and self._way in ONLY_WRITES:
            super().write(handle, data[: len(data) // 2])
            handle.flush()
            if self._way is Way.HALF_THEN_DEATH:
                self._die()
            raise OSError(errno.ENOSPC, "No space left on device")
        self._break_before()
        super().write(handle, data)
        if self._disk:
            self._disk.wrote(Path(handle.name))
        self._break_after()

    def flush(self, handle: BinaryIO) -> None:
        """See FileOperations."""
        self._step("flush", lambda: super(BreakableOperations, self).flush(handle))

    def fsync(self, handle: BinaryIO) -> None:
        """See FileOperations."""
        self._step("fsync", lambda: super(BreakableOperations, self).fsync(handle))
        if self._disk:
            self._disk.forced(Path(handle.name))

    def replace(self, source: Path, target: Path) -> None:
        """See FileOperations."""

        def action() -> None:
            if self._disk:
                self._disk.will_rename(source, target)
            super(BreakableOperations, self).replace(source, target)

        self._step("replace", action)

    def fsync_folder(self, folder: Path) -> None:
        """See FileOperations."""
        self._step("fsync_folder", lambda: super(BreakableOperations, self).fsync_folder(folder))
        if self._disk:
            self._disk.forced_folder(folder)

    def cut_power(self) -> NoReturn:
        """The machine stops here."""
        if self._disk:
            self._disk.lose()
        self._die()

    def _step(self, name: str, action: Callable[[], None]) -> None:
        self._is_broken(name)
        self._break_before()
        action()
        self._break_after()

    def _is_broken(self, name: str) -> bool:
        if self.armed:
            self.steps.append(name)
        return self._now

    @property
    def _now(self) -> bool:
        return self.armed and len(self.steps) == self._at

    def _break_before(self) -> None:
        if not self._now:
            return
        match self._way:
            case Way.DEATH_BEFORE:
                self._die()
            case Way.POWER_CUT:
                self.cut_power()
            case Way.ERROR:
                raise OSError(errno.EIO, "Input/output error")

    def _break_after(self) -> None:
        if self._now and self._way is Way.DEATH_AFTER:
            self._die()
