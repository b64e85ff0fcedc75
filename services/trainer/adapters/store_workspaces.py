"""Workspaces, seeds, pools, reports and versions over the store's gRPC."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from videotree.store.v1 import (
    pool_pb2,
    version_pb2,
    version_service_pb2,
    version_service_pb2_grpc,
    workspace_service_pb2_grpc,
)
from videotree.store.v1 import workspace_service_pb2 as pb

from services.trainer.adapters.calls import Caller
from services.trainer.adapters.messages import from_message, to_message
from services.trainer.domain.pools import Pools
from services.trainer.domain.versions import Version, VersionChange
from services.trainer.domain.workspaces import BackupCopy, Manifest, Seed

_COPY_TIMEOUT_SECONDS = 600.0
_KINDS = {"skills": version_pb2.VERSION_KIND_SKILLS, "prompts": version_pb2.VERSION_KIND_PROMPTS}


class StoreWorkspaces:
    """The `Workspaces` port."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub, self._caller = workspace_service_pb2_grpc.WorkspaceServiceStub(channel), caller

    async def create_from_files(
        self, name: str, dataset: str, skills: Mapping[str, str], prompts: Mapping[str, str]
    ) -> Manifest:
        """Makes a workspace whose v1 skills and prompts are these files."""
        initial = pb.InitialContent(dataset=dataset, skills=skills, prompts=prompts)
        request = pb.CreateWorkspaceRequest(name=name, initial=initial)
        answer = await self._caller.unary(self._stub.CreateWorkspace, request, _COPY_TIMEOUT_SECONDS)
        return from_message(answer.manifest, Manifest)

    async def create_from_seed(self, name: str, seed: str, *, force: bool) -> Manifest:
        """Makes a workspace as a copy of a seed."""
        request = pb.CreateWorkspaceRequest(name=name, seed=seed, force=force)
        answer = await self._caller.unary(self._stub.CreateWorkspace, request, _COPY_TIMEOUT_SECONDS)
        return from_message(answer.manifest, Manifest)

    async def get(self, name: str) -> tuple[Manifest, str]:
        """The manifest, and the workspace's folder as the store sees it."""
        answer = await self._caller.unary(self._stub.GetWorkspace, pb.GetWorkspaceRequest(workspace=name))
        return from_message(answer.manifest, Manifest), answer.path

    async def names(self) -> list[str]:
        """The names of all workspaces, in ascending order."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(self._stub.ListWorkspaces, pb.ListWorkspacesRequest(page_token=token))
        )
        return [each.name async for page in pages for each in page.manifests]

    async def set_current(self, name: str, current: Mapping[str, str], etag: str) -> Manifest:
        """Changes what the workspace uses now."""
        request = pb.UpdateManifestRequest(workspace=name, current=current, etag=etag)
        return from_message((await self._caller.unary(self._stub.UpdateManifest, request)).manifest, Manifest)

    async def record_run(self, name: str, run_id: str) -> Manifest:
        """Appends a snapshot of what is current for a run; the same run twice is one entry."""
        request = pb.RecordRunRequest(workspace=name, run_id=run_id)
        return from_message((await self._caller.unary(self._stub.RecordRun, request)).manifest, Manifest)

    async def freeze_pools(self, name: str, pools: Pools, split_manifest_json: str, *, force: bool) -> tuple[str, str]:
        """Freezes a split; returns its sha256 and the name of the backup that force made."""
        request = pb.FreezePoolsRequest(
            workspace=name,
            pools=to_message(pools, pool_pb2.Pools),
            split_manifest_json=split_manifest_json,
            force=force,
        )
        answer = await self._caller.unary(self._stub.FreezePools, request)
        return answer.pools_sha256, answer.backup_name

    async def pools(self, name: str) -> tuple[Pools, str]:
        """The frozen split and its manifest as JSON."""
        answer = await self._caller.unary(self._stub.GetPools, pb.GetPoolsRequest(workspace=name))
        return from_message(answer.pools, Pools), answer.split_manifest_json

    async def init_seed(
        self, seed: str, workspace: str, run_id: str, skills_version: str, prompts_version: str, *, force: bool
    ) -> tuple[Seed, int]:
        """Makes a seed with the workspace's pools; returns it and the number of duplicate rows left out."""
        request = pb.InitSeedRequest(
            name=seed,
            source_workspace=workspace,
            source_run_id=run_id,
            skills_version=skills_version,
            prompts_version=prompts_version,
            with_pools=True,
            force=force,
        )
        answer = await self._caller.unary(self._stub.InitSeed, request, _COPY_TIMEOUT_SECONDS)
        return from_message(answer.seed, Seed), answer.duplicates_dropped

    async def seeds(self) -> list[Seed]:
        """All seeds by name."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(self._stub.ListSeeds, pb.ListSeedsRequest(page_token=token))
        )
        return [from_message(each, Seed) async for page in pages for each in page.seeds]

    async def write_report(self, workspace: str, name: str, content: bytes) -> str:
        """Writes a file below the workspace's reports folder; returns its path as the store sees it."""
        request = pb.WriteReportRequest(workspace=workspace, name=name, content=content)
        return (await self._caller.unary(self._stub.WriteReport, request)).path

    async def backup(self, workspace: str, copy: str) -> BackupCopy:
        """Makes a consistent copy of a workspace while the store serves."""
        request = pb.BackupRequest(workspace=workspace, backup=copy)
        answer = await self._caller.unary(self._stub.Backup, request, _COPY_TIMEOUT_SECONDS)
        return from_message(answer, BackupCopy)

    async def restore(self, copy: str, workspace: str) -> Manifest:
        """Makes a workspace from a copy; never overwrites one."""
        request = pb.RestoreRequest(backup=copy, workspace=workspace)
        answer = await self._caller.unary(self._stub.Restore, request, _COPY_TIMEOUT_SECONDS)
        return from_message(answer.manifest, Manifest)


class StoreVersions:
    """The `Versions` port."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub, self._caller = version_service_pb2_grpc.VersionServiceStub(channel), caller

    async def get(self, workspace: str, kind: str, version: str) -> Version:
        """A version with its files' texts."""
        request = version_service_pb2.GetVersionRequest(workspace=workspace, kind=_KINDS[kind], version=version)
        return from_message((await self._caller.unary(self._stub.GetVersion, request)).version, Version)

    async def all(self, workspace: str, kind: str) -> list[Version]:
        """All versions in the order they were published, without texts."""
        pages = self._caller.pages(
            lambda token: self._caller.unary(
                self._stub.ListVersions,
                version_service_pb2.ListVersionsRequest(
                    workspace=workspace, kind=_KINDS[kind], page_size=1000, page_token=token
                ),
            )
        )
        return [from_message(each, Version) async for page in pages for each in page.versions]

    async def publish(self, workspace: str, change: VersionChange) -> Version:
        """Makes the next version; content identical to the parent returns the parent."""
        request = version_service_pb2.PublishVersionRequest(
            workspace=workspace, change=to_message(change, version_pb2.VersionChange)
        )
        return from_message((await self._caller.unary(self._stub.PublishVersion, request)).version, Version)

    async def diff(self, workspace: str, kind: str, old: str, new: str) -> str:
        """The unified diff of two versions; empty when equal."""
        request = version_service_pb2.DiffVersionsRequest(
            workspace=workspace, kind=_KINDS[kind], from_version=old, to_version=new
        )
        return (await self._caller.unary(self._stub.DiffVersions, request)).unified_diff
