"""The project's own compose file, run under a name and ports of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.runtime.testing import free_port

ROOT = Path(__file__).resolve().parents[3]
SERVICES = ("store", "inference", "gate", "evolver")
IMAGE_TAG = "test"
BUILD_TIMEOUT_SECONDS = 900
GRPCURL = str(Path(sysconfig.get_path("scripts")) / "grpcurl")


@dataclass
class Stack:
    """Containers of one test session; `ports` are those published on 127.0.0.1, by service."""

    project: str
    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in (*SERVICES, "simulator")})

    def compose(self, *arguments: str, timeout: float = 300) -> str:
        """The standard output of a compose command; raises AssertionError with what it printed when it fails."""
        return run(
            [*compose_command(), "-f", "deploy/compose.yaml", "--profile", "demo", *arguments], self.env(), timeout
        )

    def env(self) -> dict[str, str]:
        """The environment in which compose and the build scripts run."""
        ports = {f"{name.upper()}_PORT": str(port) for name, port in self.ports.items()}
        return {**os.environ, **ports, "COMPOSE_PROJECT_NAME": self.project, "IMAGE_TAG": IMAGE_TAG}

    def container(self, service: str) -> dict[str, object]:
        """What the engine says of a service's container."""
        (container,) = self.compose("ps", "--all", "--quiet", service).split() or [""]
        details: list[dict[str, object]] = json.loads(run(["docker", "inspect", container], self.env(), 30))
        return details[0]

    def state(self, service: str) -> dict[str, Any]:
        """The state of a service's container: `Status`, `ExitCode`, `Health`, ..."""
        state = self.container(service)["State"]
        assert isinstance(state, dict)
        return state

    def wait_for_status(self, service: str, status: str, seconds: float = 30) -> None:
        """Returns once the container is in that status; raises AssertionError after `seconds`."""
        deadline = time.monotonic() + seconds
        while (now := self.state(service)["Status"]) != status:
            assert time.monotonic() < deadline, f"{service} is still {now}"
            time.sleep(0.2)

    def wait_until_healthy(self, service: str, seconds: float = 240) -> None:
        """Returns once the container is healthy; raises AssertionError with its log after `seconds`."""
        deadline = time.monotonic() + seconds
        while (health := self.state(service)["Health"]["Status"]) != "healthy":
            log = self.compose("logs", "--tail", "50", service) if time.monotonic() > deadline else ""
            assert not log, f"{service} is {health}:\n{log}"
            time.sleep(0.5)

    @contextmanager
    def trainer(self, *arguments: str, settings: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
        """A running `videotree` command in the trainer's container; standard output and errors come as one."""
        given = [part for name, value in (settings or {}).items() for part in ("-e", f"{name}={value}")]
        command = [*compose_command(), "-f", "deploy/compose.yaml", "run", "--rm", "-T", "--no-deps", *given, "trainer"]
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=ROOT,
            env=self.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=60)

    def videotree(self, *arguments: str, settings: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Exit code and output of a `videotree` command that ran in the trainer's container."""
        with self.trainer(*arguments, settings=settings) as process:
            output, _ = process.communicate(timeout=300)
            return process.returncode, output

    def grpcurl(self, service: str, method: str, request: str = "{}") -> dict[str, object]:
        """The answer of a method, called with the real grpcurl over reflection, without any proto file."""
        token = (ROOT / "deploy" / "secrets" / "token").read_text(encoding="utf-8")
        command = [GRPCURL, "-plaintext", "-max-time", "20"]
        command += ["-H", f"authorization: Bearer {token}", "-d", request, f"127.0.0.1:{self.ports[service]}", method]
        answer: dict[str, object] = json.loads(run(command, self.env(), 30) or "{}")
        return answer


def run(command: list[str], env: dict[str, str], timeout: float) -> str:
    """The standard output of `command`, run in the project's folder."""
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    )
    return done.stdout


def compose_command() -> list[str]:
    """`docker compose` or docker-compose, whichever is there."""
    done = subprocess.run(["docker", "compose", "version"], capture_output=True)
    if done.returncode == 0:
        return ["docker", "compose"]
    found = shutil.which("docker-compose")
    assert found, "neither `docker compose` nor docker-compose is installed"
    return [found]
