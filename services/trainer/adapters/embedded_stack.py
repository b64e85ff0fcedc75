"""The whole stack as child processes on free loopback ports, for one machine and no other software (CLI-1)."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2

from services.runtime.channels import open_channel
from services.trainer.adapters.child_process import ChildProcess, start_child
from services.trainer.domain.errors import StackFailed

SERVICES = ("store", "inference", "gate", "evolver")
DEFAULT_PORTS = {"store": 50051, "inference": 50052, "gate": 50053, "evolver": 50054}
_START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_SIMULATED_MODELS = {
    "LLM_MODEL": "sim-agent",
    "JUDGE_LLM_MODEL": "sim-judge",
    "EVOLVE_LLM_MODEL": "sim-evolve",
    "TOOL_LLM_MODEL": "sim-tool",
    "VISION_LLM_MODEL": "sim-vision",
}


@dataclass(frozen=True, slots=True)
class StackOptions:
    """Which services to start, on which data.

    `world` starts the simulated model with that world file; `default_ports` takes 50051 to 50054, not free ones.
    """

    data_root: Path
    world: Path | None
    services: tuple[str, ...] = SERVICES
    default_ports: bool = False


@dataclass(frozen=True, slots=True)
class EmbeddedStack:
    """A stack that serves: the address of each service, and its processes."""

    addresses: Mapping[str, str]
    children: tuple[ChildProcess, ...]
    log_dir: Path

    async def stop(self) -> None:
        """Stops the services, the store last: the others write to it until their end."""
        await _stop(self.children)

    async def wait(self) -> None:
        """Returns never; raises StackFailed once a service has ended."""
        waits = [asyncio.ensure_future(child.wait()) for child in self.children]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        for child in self.children:
            child.require_alive()


async def start_stack(options: StackOptions) -> EmbeddedStack:
    """Starts the services and waits until each is healthy. Raises StackFailed; nothing is left running then."""
    root = options.data_root.resolve()
    log_dir = _log_dir(root)
    ports = _ports(options)
    addresses = {name: f"127.0.0.1:{ports[name]}" for name in SERVICES}
    environment = _environment(options, root, addresses, ports)
    children: list[ChildProcess] = []
    try:
        if options.world is not None:
            arguments = ["services.simulator.main", "--host", "127.0.0.1", "--port", str(ports["simulator"])]
            arguments += ["--world", str(options.world)]
            children.append(await start_child("simulator", arguments, environment, log_dir / "simulator.log"))
        for name in options.services:
            arguments = [f"services.{name}.main", "--host", "127.0.0.1", "--port", str(ports[name])]
            arguments += ["--metrics-port", "0"]
            children.append(await start_child(name, arguments, environment, log_dir / f"{name}.log"))
        started = {name: addresses[name] for name in options.services}
        stack = EmbeddedStack(started, tuple(children), log_dir)
        await _until_serving(stack, None if options.world is None else ports["simulator"])
    except BaseException:
        await _stop(children)
        raise
    return stack


async def _stop(children: Sequence[ChildProcess]) -> None:
    await asyncio.gather(*(child.stop() for child in children if child.name != "store"))
    await asyncio.gather(*(child.stop() for child in children if child.name == "store"))


def _log_dir(root: Path) -> Path:
    folder = root / ".embedded" / "logs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StackFailed(
            f"the data root {root} can't be used ({error.strerror}); name another with --data or VIDEOTREE_DATA"
        ) from error
    return folder


async def is_serving(address: str, timeout_seconds: float = 5.0) -> bool:
    """Whether a healthy gRPC service answers at `address`; where nothing listens the answer comes at once."""
    async with open_channel(address) as channel:
        check: grpc.aio.UnaryUnaryMultiCallable[health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse]
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        try:
            answer = await check(health_pb2.HealthCheckRequest(), timeout=timeout_seconds)
        except grpc.aio.AioRpcError:
            return False
        return answer.status == health_pb2.HealthCheckResponse.SERVING


async def _until_serving(stack: EmbeddedStack, simulator_port: int | None) -> None:
    deadline = time.monotonic() + _START_SECONDS
    waiting = dict(stack.addresses)
    while waiting or simulator_port is not None:
        for child in stack.children:
            child.require_alive()
        if time.monotonic() > deadline:
            raise StackFailed(f"{', '.join(waiting) or 'simulator'} did not start in time; see {stack.log_dir}")
        for name, address in list(waiting.items()):
            if await accepts(int(address.rpartition(":")[2])) and await is_serving(address):
                del waiting[name]
        if simulator_port is not None and await accepts(simulator_port):
            simulator_port = None
        await asyncio.sleep(_POLL_SECONDS)


async def accepts(port: int) -> bool:
    """Whether anything listens at this port of the loopback: far cheaper to ask than with a gRPC channel."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def _ports(options: StackOptions) -> dict[str, int]:
    names = [*SERVICES, "simulator"]
    with ExitStack() as held:
        sockets = {name: held.enter_context(socket.socket()) for name in names}
        for each in sockets.values():
            each.bind(("127.0.0.1", 0))
        free = {name: int(each.getsockname()[1]) for name, each in sockets.items()}
    return {**free, **DEFAULT_PORTS} if options.default_ports else free


def _environment(
    options: StackOptions, root: Path, addresses: Mapping[str, str], ports: Mapping[str, int]
) -> dict[str, str]:
    environment = {f"VIDEOTREE_{name.upper()}_ADDRESS": address for name, address in addresses.items()}
    environment |= {"VIDEOTREE_DATA": str(root), "VIDEOTREE_CACHE_DIR": str(root / ".embedded" / "cache")}
    if options.world is not None:
        environment |= _SIMULATED_MODELS
        environment["LLM_BASE_URL"] = f"http://127.0.0.1:{ports['simulator']}/v1"
        environment["VIDEOTREE_INFERENCE_SEED_FROM_SALT"] = "true"
    return environment
