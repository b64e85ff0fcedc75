"""The trainer's ports wired to running services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from services.runtime.channels import open_channel
from services.trainer.adapters.calls import Caller
from services.trainer.adapters.evolver_client import EvolverClient
from services.trainer.adapters.gate_client import GateClient
from services.trainer.adapters.inference_agent import InferenceAgent
from services.trainer.adapters.models_client import ModelsClient
from services.trainer.adapters.store_ledger import StoreLedger
from services.trainer.adapters.store_library import StoreLibrary
from services.trainer.adapters.store_runs import StoreRuns
from services.trainer.adapters.store_workspaces import StoreVersions, StoreWorkspaces
from services.trainer.use_cases.ports import Services


@asynccontextmanager
async def connected(addresses: Mapping[str, str], timeout_seconds: float) -> AsyncIterator[Services]:
    """All ports over channels to `addresses` (by service name); the channels are closed at the end."""
    async with AsyncExitStack() as stack:
        channels = {name: await stack.enter_async_context(open_channel(addresses[name])) for name in sorted(addresses)}
        callers = {name: Caller(name, addresses[name], timeout_seconds) for name in addresses}
        store, inference = (channels["store"], callers["store"]), (channels["inference"], callers["inference"])
        yield Services(
            library=StoreLibrary(*store),
            workspaces=StoreWorkspaces(*store),
            versions=StoreVersions(*store),
            runs=StoreRuns(*store),
            ledger=StoreLedger(*store),
            agent=InferenceAgent(*inference),
            models=ModelsClient(*inference),
            gate=GateClient(channels["gate"], callers["gate"]),
            evolver=EvolverClient(channels["evolver"], callers["evolver"]),
        )
