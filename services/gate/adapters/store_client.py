"""The store service: skill texts, the split, and the cache of base results."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

import grpc
from videotree.store.v1 import (
    evaluation_pb2,
    pool_pb2,
    training_service_pb2,
    training_service_pb2_grpc,
    version_pb2,
    version_service_pb2,
    version_service_pb2_grpc,
    workspace_service_pb2,
    workspace_service_pb2_grpc,
)

from services.gate.adapters.grpc_failure import store_failure
from services.gate.use_cases.ports import BaselineKey, BaselineRow, PooledUnit

T = TypeVar("T")

UNITS_PER_CALL = 5_000
"""Cached results asked for or written in one call: well below the message limit."""


class GrpcStore:
    """The `Store` port over a channel, which its owner closes."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._workspaces = workspace_service_pb2_grpc.WorkspaceServiceStub(channel)
        self._versions = version_service_pb2_grpc.VersionServiceStub(channel)
        self._training = training_service_pb2_grpc.TrainingServiceStub(channel)

    async def skill_files(self, workspace: str, version: str) -> Mapping[str, str]:
        """See `Store.skill_files`."""
        return await self._files(workspace, version_pb2.VERSION_KIND_SKILLS, version)

    async def prompt_files(self, workspace: str, version: str) -> Mapping[str, str]:
        """See `Store.prompt_files`."""
        return await self._files(workspace, version_pb2.VERSION_KIND_PROMPTS, version)

    async def _files(self, workspace: str, kind: version_pb2.VersionKind.ValueType, version: str) -> Mapping[str, str]:
        request = version_service_pb2.GetVersionRequest(workspace=workspace, kind=kind, version=version)
        response = await _called(self._versions.GetVersion(request), "store GetVersion")
        return {file.name: file.text for file in response.version.files}

    async def pooled_units(self, workspace: str) -> Mapping[str, PooledUnit]:
        """See `Store.pooled_units`."""
        request = workspace_service_pb2.GetPoolsRequest(workspace=workspace)
        response = await _called(self._workspaces.GetPools(request), "store GetPools")
        return {
            unit.unit_id: PooledUnit(unit.task_type, tuple(unit.question_ids), unit.pool == pool_pb2.POOL_TEST)
            for unit in response.pools.units
        }

    async def cached_results(self, key: BaselineKey, unit_ids: Collection[str]) -> Mapping[str, bool]:
        """See `Store.cached_results`."""
        wanted, found = list(unit_ids), dict[str, bool]()
        for start in range(0, len(wanted), UNITS_PER_CALL):
            request = training_service_pb2.GetBaselineResultsRequest(
                workspace=key.workspace,
                task_type=key.task_type,
                skill_sha256=key.skill_sha256,
                prompts_version=key.prompts_version,
                unit_ids=wanted[start : start + UNITS_PER_CALL],
            )
            response = await _called(self._training.GetBaselineResults(request), "store GetBaselineResults")
            found |= {result.unit_id: result.correct for result in response.results}
        return found

    async def cache_results(self, rows: Sequence[BaselineRow]) -> None:
        """See `Store.cache_results`."""
        for workspace, group in groupby(rows, key=lambda row: row.key.workspace):
            results = [_result(row) for row in group]
            for start in range(0, len(results), UNITS_PER_CALL):
                request = training_service_pb2.PutBaselineResultsRequest(
                    workspace=workspace, results=results[start : start + UNITS_PER_CALL]
                )
                await _called(self._training.PutBaselineResults(request), "store PutBaselineResults")


def _result(row: BaselineRow) -> evaluation_pb2.BaselineResult:
    return evaluation_pb2.BaselineResult(
        task_type=row.key.task_type,
        skill_sha256=row.key.skill_sha256,
        prompts_version=row.key.prompts_version,
        unit_id=row.unit_id,
        correct=row.correct,
        run_id=row.run_id,
    )


async def _called(call: Awaitable[T], name: str) -> T:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise store_failure(error, name) from error
