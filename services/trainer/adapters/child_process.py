"""One service as a child process: its output in a log file, its life bound to this process."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from services.trainer.domain.errors import StackFailed

_PR_SET_PDEATHSIG = 1
_STOP_SECONDS = 15.0
_LINES_SHOWN = 3


class ChildProcess:
    """A started child. Make one with `start_child`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log_path: Path) -> None:
        self.name, self.log_path = name, log_path
        self._process = process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def require_alive(self) -> None:
        """Raises StackFailed with the last lines of its log when it has ended."""
        if self._process.returncode is not None:
            raise StackFailed(f"{self.name} ended with code {self._process.returncode}: {self._last_lines()}")

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        return await self._process.wait()

    async def stop(self) -> None:
        """Asks it to stop, and kills it when it doesn't within 15 seconds."""
        if self._process.returncode is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    def _last_lines(self) -> str:
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return " | ".join(lines[-_LINES_SHOWN:]) or f"its log {self.log_path} is empty"


async def start_child(
    name: str, arguments: Sequence[str], environment: Mapping[str, str], log_path: Path
) -> ChildProcess:
    """Starts `python -m ARGUMENTS` in its own session, so that Ctrl-C reaches the trainer first."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment},
            start_new_session=True,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        )
    return ChildProcess(name, process, log_path)


def _die_with_parent() -> None:
    """Has the kernel stop the child when this process dies without a chance to (kill -9)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
