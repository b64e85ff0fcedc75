"""A whole training as real processes that can be killed one by one: services, simulated model, command line."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from services.runtime.testing import free_port

ROOT = Path(__file__).resolve().parents[1]
SERVICES = ("store", "inference", "gate", "evolver")
PROCESSES = ("simulator", *SERVICES)
TRAINER = "trainer"
_WORLD = ROOT / "examples" / "sample" / "world.toml"
_MODELS = {"LLM_MODEL": "sim-agent"} | {
    f"{role}_LLM_MODEL": f"sim-{role.lower()}" for role in ("JUDGE", "EVOLVE", "TOOL", "VISION")
}
_START_SECONDS = 120.0
_STOP_SECONDS = 30.0


class House(ABC):
    """One data root, what works on it, and the trainer's command line. `log` names the file of its last attempt."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.data = folder / "data"
        self._settings = settings
        self._attempts = 0
        self._trainer: subprocess.Popen[bytes] | None = None
        self.log = folder / "trainer-0.log"

    @abstractmethod
    def open(self) -> None:
        """Starts what the trainer does not start itself."""

    @abstractmethod
    def pids(self) -> dict[str, int]:
        """Pid by name of every process of the house that is alive, the trainer included."""

    @abstractmethod
    def revive(self, name: str) -> None:
        """Starts a service again, where that is not the trainer's own task."""

    @abstractmethod
    def until_serving(self) -> None:
        """Returns once everything that the trainer expects to find answers."""

    @abstractmethod
    def close(self) -> None:
        """Stops everything cleanly."""

    @abstractmethod
    def flags(self) -> tuple[str, ...]:
        """What a command line needs besides the run, to work on this house."""

    def variables(self) -> dict[str, str]:
        """The environment of the trainer: nothing of the caller's own settings."""
        paths = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "gen"))), "VIDEOTREE_CONFIG": os.devnull}
        return {**_unconfigured(), **paths, **self._settings}

    def start_trainer(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts `videotree ARGUMENTS` with a log of its own."""
        self._attempts += 1
        self.log = self.folder / f"trainer-{self._attempts}.log"
        self._trainer = _started("services.trainer.main", arguments, self.variables(), self.folder, self.log)
        return self._trainer

    def kill(self, name: str) -> None:
        """`kill -9` of one process that is alive."""
        os.kill(self.pids()[name], signal.SIGKILL)
        if name == TRAINER and self._trainer is not None:
            self._trainer.wait()

    def _trainer_pid(self) -> dict[str, int]:
        alive = self._trainer is not None and self._trainer.poll() is None
        return {TRAINER: self._trainer.pid} if alive and self._trainer is not None else {}


class HouseApart(House):
    """Each service a process of its own on a fixed port, as under a supervisor that restarts what dies."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        super().__init__(folder, settings)
        self._ports = {name: free_port() for name in PROCESSES}
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def open(self) -> None:
        """See House."""
        for name in PROCESSES:
            self.revive(name)
        self.until_serving()

    def pids(self) -> dict[str, int]:
        """See House."""
        alive = {name: child.pid for name, child in self._children.items() if child.poll() is None}
        return {**alive, **self._trainer_pid()}

    def revive(self, name: str) -> None:
        """See House."""
        if name == TRAINER:
            return
        if (old := self._children.get(name)) is not None:
            old.wait()
        arguments = ["--host", "127.0.0.1", "--port", str(self._ports[name])]
        arguments += ["--world", str(_WORLD)] if name == "simulator" else ["--metrics-port", "0"]
        log = self.folder / f"{name}.log"
        self._children[name] = _started(f"services.{name}.main", arguments, self.variables(), self.folder, log)

    def until_serving(self) -> None:
        """See House."""
        deadline = time.monotonic() + _START_SECONDS
        for name, port in self._ports.items():
            while not _accepts(port):
                if self._children[name].poll() is not None:
                    raise RuntimeError(f"{name} ended with code {self._children[name].returncode}; see {self.folder}")
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{name} does not start; see {self.folder}")
                time.sleep(0.05)

    def close(self) -> None:
        """See House."""
        if self._trainer is not None:
            _stop(self._trainer)
        for name in reversed(PROCESSES):
            if name in self._children:
                _stop(self._children[name])

    def flags(self) -> tuple[str, ...]:
        """See House."""
        return ("--demo",)

    def variables(self) -> dict[str, str]:
        """See House."""
        addresses = {f"VIDEOTREE_{name.upper()}_ADDRESS": f"127.0.0.1:{self._ports[name]}" for name in SERVICES}
        places = {"VIDEOTREE_DATA": str(self.data), "VIDEOTREE_CACHE_DIR": str(self.folder / "cache")}
        model = {
            "LLM_BASE_URL": f"http://127.0.0.1:{self._ports['simulator']}/v1",
            "VIDEOTREE_INFERENCE_SEED_FROM_SALT": "true",
            "VIDEOTREE_INFERENCE_COOLDOWN_SECONDS": "1",
        }
        return {**super().variables(), **addresses, **places, **model, **_MODELS}


class HouseEmbedded(House):
    """The stack that `videotree train --demo --data DIR` starts and owns."""

    def open(self) -> None:
        """See House."""

    def pids(self) -> dict[str, int]:
        """See House."""
        return {**processes_on(self.data), **self._trainer_pid()}

    def revive(self, name: str) -> None:
        """See House."""

    def until_serving(self) -> None:
        """Waits until the stack of a dead trainer has let go of the data root."""
        deadline = time.monotonic() + _STOP_SECONDS
        while processes_on(self.data):
            if time.monotonic() > deadline:
                raise RuntimeError(f"left running: {processes_on(self.data)}")
            time.sleep(0.05)

    def close(self) -> None:
        """See House."""
        if self._trainer is not None:
            _stop(self._trainer)

    def flags(self) -> tuple[str, ...]:
        """See House."""
        return ("--demo", "--data", str(self.data))


def processes_on(data: Path) -> dict[str, int]:
    """The services that work on a data root, by name, whoever started them."""
    found = {}
    wanted = f"VIDEOTREE_DATA={data.resolve()}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            names = [name for name in PROCESSES if f"services.{name}.main".encode() in words]
            if names and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found[names[0]] = int(entry.name)
    return found


def _started(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path
) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _unconfigured() -> dict[str, str]:
    own = ("VIDEOTREE_", "LLM_", "REDIS_")
    return {name: value for name, value in os.environ.items() if not name.startswith(own) and "_LLM_" not in name}
