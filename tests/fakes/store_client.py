"""A store under test and the stubs that talk to it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import grpc
from videotree.store.v1 import (
    library_service_pb2_grpc,
    run_service_pb2_grpc,
    training_service_pb2_grpc,
    version_service_pb2_grpc,
    workspace_service_pb2_grpc,
)

from services.runtime.serving import ServiceParts
from services.runtime.testing import local_channel
from services.store.config import StoreConfig
from services.store.main import build


@dataclass(frozen=True)
class StoreClient:
    """One stub for each of the store's services."""

    library: library_service_pb2_grpc.LibraryServiceStub
    workspaces: workspace_service_pb2_grpc.WorkspaceServiceStub
    versions: version_service_pb2_grpc.VersionServiceStub
    runs: run_service_pb2_grpc.RunServiceStub
    training: training_service_pb2_grpc.TrainingServiceStub


def store_client(channel: grpc.aio.Channel) -> StoreClient:
    """The stubs on one channel."""
    return StoreClient(
        library_service_pb2_grpc.LibraryServiceStub(channel),
        workspace_service_pb2_grpc.WorkspaceServiceStub(channel),
        version_service_pb2_grpc.VersionServiceStub(channel),
        run_service_pb2_grpc.RunServiceStub(channel),
        training_service_pb2_grpc.TrainingServiceStub(channel),
    )


@contextlib.asynccontextmanager
async def serving(parts: ServiceParts) -> AsyncIterator[StoreClient]:
    """A client of a store that is served for the length of a test."""
    async with local_channel("store", parts) as channel:
        yield store_client(channel)


async def disk_store_parts(root: Path) -> ServiceParts:
    """The real store on a data root."""
    return await build(StoreConfig(port=0, metrics_port=0, data=root))
