"""For tests: free ports and a server inside the test's own process."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import grpc

from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.config import ServingConfig
from services.runtime.serving import RunningServer, ServiceParts, start_server

# Below the ports that systems give to outgoing connections: one of those could take the port of a killed server.
_SERVER_PORTS = range(20_000, 32_000)


def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free a moment ago; prefer port 0 where the server can tell its port."""
    while True:
        port = random.SystemRandom().choice(_SERVER_PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def local_config(token_file: Path | None = None) -> ServingConfig:
    """A configuration that serves on a free port of 127.0.0.1 without metrics."""
    return ServingConfig(port=0, metrics_port=0, grace_seconds=0.1, token_file=token_file)


@contextlib.asynccontextmanager
async def local_server(
    name: str, parts: ServiceParts, config: ServingConfig | None = None
) -> AsyncIterator[RunningServer]:
    """A real server of `parts` for the length of a test; it is stopped and its parts are closed afterwards."""
    running = await start_server(name, config or local_config(), parts)
    try:
        yield running
    finally:
        await running.stop(0)
        await parts.close()


@contextlib.asynccontextmanager
async def local_channel(
    name: str, parts: ServiceParts, config: ServingConfig | None = None
) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to a real server of `parts` for the length of a test."""
    async with (
        local_server(name, parts, config) as running,
        open_channel(f"127.0.0.1:{running.port}", ClientCredentials()) as channel,
    ):
        yield channel
