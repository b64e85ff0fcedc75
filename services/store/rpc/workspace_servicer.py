"""WorkspaceService: translate, await one use case, translate back."""

# ruff: noqa: N802 - the methods are called what the protos call them

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import grpc
from videotree.store.v1 import workspace_service_pb2 as pb
from videotree.store.v1 import workspace_service_pb2_grpc

from services.store.domain.errors import InvalidRequest
from services.store.rpc import translate
from services.store.rpc.row_codec import timestamp
from services.store.use_cases.backups import BackupWorkspaces
from services.store.use_cases.paging import PageRequest
from services.store.use_cases.pools import FrozenPools
from services.store.use_cases.seeds import SeedRequest, Seeds
from services.store.use_cases.workspaces import InitialContent, Workspaces

_Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class WorkspaceUseCases:
    """What WorkspaceService can do."""

    workspaces: Workspaces
    pools: FrozenPools
    seeds: Seeds
    backups: BackupWorkspaces


class WorkspaceServicer(workspace_service_pb2_grpc.WorkspaceServiceServicer):
    """Workspaces, seeds, frozen pools, reports and backups."""

    def __init__(self, use_cases: WorkspaceUseCases) -> None:
        self._does = use_cases

    async def CreateWorkspace(
        self, request: pb.CreateWorkspaceRequest, context: _Context
    ) -> pb.CreateWorkspaceResponse:
        """Make a workspace from files or from a seed."""
        manifest = await self._does.workspaces.create(request.name, _origin(request), force=request.force)
        return pb.CreateWorkspaceResponse(manifest=translate.manifest_message(manifest))

    async def GetWorkspace(self, request: pb.GetWorkspaceRequest, context: _Context) -> pb.GetWorkspaceResponse:
        """Return the manifest with its etag."""
        manifest, path = await self._does.workspaces.get(request.workspace)
        return pb.GetWorkspaceResponse(manifest=translate.manifest_message(manifest), path=path)

    async def ListWorkspaces(self, request: pb.ListWorkspacesRequest, context: _Context) -> pb.ListWorkspacesResponse:
        """List workspaces."""
        page = await self._does.workspaces.page(PageRequest(request.page_size, request.page_token))
        return pb.ListWorkspacesResponse(
            manifests=[translate.manifest_message(each) for each in page.items], next_page_token=page.next_token
        )

    async def UpdateManifest(self, request: pb.UpdateManifestRequest, context: _Context) -> pb.UpdateManifestResponse:
        """Change `current`."""
        manifest = await self._does.workspaces.update_current(request.workspace, dict(request.current), request.etag)
        return pb.UpdateManifestResponse(manifest=translate.manifest_message(manifest))

    async def UpdateBest(self, request: pb.UpdateBestRequest, context: _Context) -> pb.UpdateBestResponse:
        """Change `best`."""
        entries = translate.best_values(request.best)
        manifest = await self._does.workspaces.update_best(request.workspace, entries, request.etag)
        return pb.UpdateBestResponse(manifest=translate.manifest_message(manifest))

    async def RecordRun(self, request: pb.RecordRunRequest, context: _Context) -> pb.RecordRunResponse:
        """Append a snapshot of `current` for a run."""
        manifest = await self._does.workspaces.record_run(request.workspace, request.run_id)
        return pb.RecordRunResponse(manifest=translate.manifest_message(manifest))

    async def FreezePools(self, request: pb.FreezePoolsRequest, context: _Context) -> pb.FreezePoolsResponse:
        """Freeze a split."""
        pools = translate.pools_value(request.pools)
        frozen = await self._does.pools.freeze(
            request.workspace, pools, request.split_manifest_json, force=request.force
        )
        return pb.FreezePoolsResponse(pools_sha256=frozen.pools_sha256, backup_name=frozen.backup_name)

    async def GetPools(self, request: pb.GetPoolsRequest, context: _Context) -> pb.GetPoolsResponse:
        """Return the frozen split."""
        pools, sha256, split_manifest = await self._does.pools.get(request.workspace)
        return pb.GetPoolsResponse(pools=translate.pools_message(pools, sha256), split_manifest_json=split_manifest)

    async def InitSeed(self, request: pb.InitSeedRequest, context: _Context) -> pb.InitSeedResponse:
        """Make a seed out of a workspace's run."""
        wanted = SeedRequest(
            name=request.name,
            source_workspace=request.source_workspace,
            source_run_id=request.source_run_id,
            skills_version=request.skills_version,
            prompts_version=request.prompts_version,
            with_pools=request.with_pools,
        )
        seed, dropped = await self._does.seeds.create(wanted, force=request.force)
        return pb.InitSeedResponse(seed=translate.seed_message(seed), duplicates_dropped=dropped)

    async def ListSeeds(self, request: pb.ListSeedsRequest, context: _Context) -> pb.ListSeedsResponse:
        """List seeds."""
        page = await self._does.seeds.page(PageRequest(request.page_size, request.page_token))
        return pb.ListSeedsResponse(
            seeds=[translate.seed_message(each) for each in page.items], next_page_token=page.next_token
        )

    async def WriteReport(self, request: pb.WriteReportRequest, context: _Context) -> pb.WriteReportResponse:
        """Write one report file."""
        path = await self._does.workspaces.write_report(request.workspace, request.name, request.content)
        return pb.WriteReportResponse(path=path)

    async def ReadReport(self, request: pb.ReadReportRequest, context: _Context) -> pb.ReadReportResponse:
        """Read one report file."""
        return pb.ReadReportResponse(content=await self._does.workspaces.read_report(request.workspace, request.name))

    async def Backup(self, request: pb.BackupRequest, context: _Context) -> pb.BackupResponse:
        """Make a consistent copy of a workspace."""
        copy = await self._does.backups.backup(request.workspace, request.backup)
        return pb.BackupResponse(path=copy.path, size_bytes=copy.size_bytes, created_time=timestamp(copy.created_time))

    async def Restore(self, request: pb.RestoreRequest, context: _Context) -> pb.RestoreResponse:
        """Make a workspace from a copy."""
        manifest = await self._does.backups.restore(request.backup, request.workspace)
        return pb.RestoreResponse(manifest=translate.manifest_message(manifest))


def _origin(request: pb.CreateWorkspaceRequest) -> InitialContent | str:
    match request.WhichOneof("origin"):
        case "seed":
            return request.seed
        case "initial":
            initial = request.initial
            return InitialContent(initial.dataset, dict(initial.skills), dict(initial.prompts))
        case _:
            raise InvalidRequest("say where the content comes from: seed or initial", field="origin")
