"""Real processes for benchmarks: the services, the simulated model, Redis; each on a free port of loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from services.runtime.testing import free_port

ROOT = Path(__file__).resolve().parents[1]
_ESTABLISHED, _CLOSE_WAIT = "01", "08"


@dataclass(frozen=True, slots=True)
class Child:
    """A process that serves on `port`."""

    port: int
    pid: int


@contextlib.asynccontextmanager
async def python_child(
    module: str, *arguments: str, folder: Path, environment: Mapping[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`python -m MODULE` with only these VIDEOTREE_ and *_LLM_ variables; its output goes to `folder`/MODULE.log."""
    kept = {name: value for name, value in os.environ.items() if not _configures(name)}
    paths = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "gen"))), "VIDEOTREE_CONFIG": os.devnull}
    with (folder / f"{module}.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, *arguments,
            cwd=folder, env={**kept, **paths, **environment}, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 20)
            except TimeoutError:
                process.kill()
                await process.wait()


def _configures(name: str) -> bool:
    return name.startswith(("VIDEOTREE_", "LLM_", "REDIS_")) or "_LLM_" in name


@contextlib.asynccontextmanager
async def simulator(folder: Path, world: str) -> AsyncIterator[Child]:
    """The simulated model with a world written as TOML."""
    path, port = folder / "world.toml", free_port()
    path.write_text(world, encoding="utf-8")
    arguments = ("--host", "127.0.0.1", "--port", str(port), "--world", str(path))
    async with python_child("services.simulator.main", *arguments, folder=folder, environment={}) as process:
        await until_listening(port)
        yield Child(port, process.pid)


@contextlib.asynccontextmanager
async def service(name: str, folder: Path, environment: Mapping[str, str]) -> AsyncIterator[Child]:
    """One of the four services; ready once its port accepts connections."""
    port = free_port()
    arguments = ("--host", "127.0.0.1", "--port", str(port), "--metrics-port", "0")
    async with python_child(f"services.{name}.main", *arguments, folder=folder, environment=environment) as process:
        await until_listening(port)
        yield Child(port, process.pid)


async def until_listening(port: int, seconds: float = 180) -> None:
    """Returns once the port of loopback accepts a connection."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port} after {seconds} s")


async def simulator_stats(port: int) -> dict[str, Any]:
    """What the simulator counted: calls, faults by kind, requests in flight."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/stats") as response:
        stats: dict[str, Any] = await response.json()
        return stats


class RedisServer:
    """A `redis-server` without persistence that can be stopped, frozen, thawed and started again on its port.

    With a password, `url` carries it.
    """

    def __init__(self, folder: Path, password: str = "") -> None:
        self.port = free_port()
        login = f":{quote(password, safe='')}@" if password else ""
        self.url = f"redis://{login}127.0.0.1:{self.port}/0"
        self._folder = folder
        self._password = ("--requirepass", password) if password else ()
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts it, empty, and returns once it listens."""
        options = (
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(self._folder),
            *self._password,
        )
        nowhere = asyncio.subprocess.DEVNULL
        self._process = await asyncio.create_subprocess_exec("redis-server", *options, stdout=nowhere)
        await until_listening(self.port)

    def freeze(self) -> None:
        """It keeps its connections and answers nothing more."""
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on where it was frozen."""
        self._running().send_signal(signal.SIGCONT)

    async def stop(self) -> None:
        """Kills it; what it held is lost."""
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
            self._process = None

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError("redis-server is not running")
        return self._process


@contextlib.asynccontextmanager
async def redis_server(folder: Path, password: str = "") -> AsyncIterator[RedisServer]:
    """A Redis that listens; it is gone afterwards."""
    server = RedisServer(folder, password)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def resident_mib(pid: int) -> float:
    """Resident memory of a process."""
    return _status_mib(pid, "VmRSS")


def private_mib(pid: int) -> float:
    """Resident memory that no file stands behind: without code, and without files mapped by SQLite."""
    return _status_mib(pid, "RssAnon")


def _status_mib(pid: int, name: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, all its threads, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connections_to(port: int) -> dict[str, int]:
    """Connections of this machine to a port of loopback: `open`, and `abandoned` (closed by the peer alone)."""
    states = [line.split()[3] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
              if int(line.split()[2].rpartition(":")[2], 16) == port]  # fmt: skip
    return {"open": states.count(_ESTABLISHED), "abandoned": states.count(_CLOSE_WAIT)}
