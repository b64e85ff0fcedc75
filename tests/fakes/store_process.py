"""The real store as a process of its own, for tests that kill it or look at its memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import grpc
from videotree.store.v1 import workspace_service_pb2

from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.testing import free_port
from tests.fakes.store_client import StoreClient, store_client

_ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 60


@dataclass(frozen=True)
class StoreProcess:
    """A store that answers calls."""

    process: asyncio.subprocess.Process
    client: StoreClient
    address: str

    async def kill(self) -> None:
        """End it with SIGKILL, at once."""
        self.process.kill()
        await self.process.wait()

    @property
    def resident_mib(self) -> float:
        """Its resident memory in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024


@contextlib.asynccontextmanager
async def store_process(data: Path) -> AsyncIterator[StoreProcess]:
    """A store on this data root; it is killed at the end if it still runs."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "services.store.main", "--port", str(port), "--metrics-port", "0"),
        env={**os.environ, "VIDEOTREE_DATA": str(data), "PYTHONPATH": f"{_ROOT}:{_ROOT / 'gen'}"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=data,
    )
    try:
        address = f"127.0.0.1:{port}"
        async with open_channel(address, ClientCredentials()) as channel:
            client = store_client(channel)
            await asyncio.wait_for(_until_it_answers(client, process), _START_SECONDS)
            yield StoreProcess(process, client, address)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _until_it_answers(client: StoreClient, process: asyncio.subprocess.Process) -> None:
    while True:
        try:
            await client.workspaces.ListWorkspaces(workspace_service_pb2.ListWorkspacesRequest())
        except grpc.aio.AioRpcError:
            if process.returncode is not None:
                raise RuntimeError(f"the store ended with code {process.returncode}") from None
            await asyncio.sleep(0.1)
        else:
            return
