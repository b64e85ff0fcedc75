"""One service as a child process: its output in a log file, its life bound to this process."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from services.trainer.domain.errors import StackFailed

_PR_SET_PDEATHSIG = 1
_STOP_SECONDS = 15.0


class ChildProcess:
    """A started child. Make one with `start_child`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log_path: Path, log_start: int) -> None:
        self.name, self.log_path = name, log_path
        self._process, self._log_start = process, log_start

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def require_alive(self) -> None:
        """Raises StackFailed with its last words, or the signal that killed it, when it has ended."""
        code = self._process.returncode
        if code is not None and code < 0:
            raise StackFailed(
                f"{self.name} was killed by signal {-code} ({signal.strsignal(-code)}), by hand or for want of memory"
            )
        if code is not None:
            raise StackFailed(f"{self.name} ended with code {code}: {self._last_words()}")

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

    def _last_words(self) -> str:
        """The reason it logged since its start, or else its last line."""
        own = self.log_path.read_bytes()[self._log_start :].decode("utf-8", errors="replace")
        lines = own.strip().splitlines()
        for line in reversed(lines):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and entry.get("reason"):
                return str(entry["reason"])
        return lines[-1] if lines else f"its log {self.log_path} is empty"


async def start_child(
    name: str, arguments: Sequence[str], environment: Mapping[str, str], log_path: Path
) -> ChildProcess:
    """Starts `python -m ARGUMENTS` in its own session, so that Ctrl-C reaches the trainer first."""
    with log_path.open("ab") as log:
        log_start = log.tell()
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
    return ChildProcess(name, process, log_path, log_start)


def _die_with_parent() -> None:
    """Has the kernel stop the child when this process dies without a chance to (kill -9)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
