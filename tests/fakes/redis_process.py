"""A real Redis for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from services.runtime.testing import free_port


class RedisProcess:
    """A Redis on a free port of 127.0.0.1 that can be stopped, frozen and started again."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address as `REDIS_URL` has it."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [
            "redis-server",
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            self.directory,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            answer = subprocess.run(["redis-cli", "-p", str(self.port), "ping"], capture_output=True, check=False)
            if answer.stdout.strip() == b"PONG":
                return
            time.sleep(0.05)
        raise AssertionError("redis-server did not start")

    def freeze(self) -> None:
        """Stop it from running (SIGSTOP); its sockets stay."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it run again."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        """Kill it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
