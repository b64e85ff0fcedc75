"""VersionService: translate, await one use case, translate back."""

# ruff: noqa: N802 - the methods are called what the protos call them

from __future__ import annotations

from typing import Any

import grpc
from videotree.store.v1 import version_service_pb2 as pb
from videotree.store.v1 import version_service_pb2_grpc

from services.store.rpc import translate
from services.store.use_cases.paging import PageRequest
from services.store.use_cases.versions import Versions

_Context = grpc.aio.ServicerContext[Any, Any]


class VersionServicer(version_service_pb2_grpc.VersionServiceServicer):
    """Immutable versions of skills and prompts."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions

    async def PublishVersion(self, request: pb.PublishVersionRequest, context: _Context) -> pb.PublishVersionResponse:
        """Make the next version."""
        change = translate.change_value(request.change, "change")
        row, created = await self._versions.publish(request.workspace, change)
        return pb.PublishVersionResponse(version=translate.version_message(row), created=created)

    async def GetVersion(self, request: pb.GetVersionRequest, context: _Context) -> pb.GetVersionResponse:
        """Return a version with its texts."""
        kind = translate.kind_text(request.kind)
        row, texts = await self._versions.get(request.workspace, kind, request.version)
        return pb.GetVersionResponse(version=translate.version_message(row, texts))

    async def ListVersions(self, request: pb.ListVersionsRequest, context: _Context) -> pb.ListVersionsResponse:
        """List versions in publishing order."""
        kind = translate.kind_text(request.kind)
        page = await self._versions.page(request.workspace, kind, PageRequest(request.page_size, request.page_token))
        return pb.ListVersionsResponse(versions=translate.version_messages(page.items), next_page_token=page.next_token)

    async def DiffVersions(self, request: pb.DiffVersionsRequest, context: _Context) -> pb.DiffVersionsResponse:
        """Return a unified diff of two versions."""
        kind = translate.kind_text(request.kind)
        diff = await self._versions.diff(request.workspace, kind, request.from_version, request.to_version)
        return pb.DiffVersionsResponse(unified_diff=diff)
