"""Reads are reads (STO-6): no query RPC changes any row."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from videotree.store.v1 import (
    evaluation_pb2,
    library_service_pb2,
    llm_call_pb2,
    run_service_pb2,
    training_service_pb2,
    version_service_pb2,
    workspace_service_pb2,
)

from services.store.adapters.tables import Base
from tests.builders.store_requests import (
    SKILLS,
    TYPE,
    WORKSPACE,
    append,
    freeze,
    make_workspace,
    pools,
    prediction,
    register,
    step_commit,
    trace,
    tree,
)
from tests.fakes.store_client import StoreClient, disk_store_parts, serving

_READING = ("Get", "List", "Load", "Read", "Stream", "Summarize", "BatchGet", "Diff")
_MODULES = (
    library_service_pb2,
    workspace_service_pb2,
    version_service_pb2,
    run_service_pb2,
    training_service_pb2,
)
_FIELDS: dict[str, Any] = {
    "workspace": WORKSPACE,
    "dataset": "sample",
    "run_id": "base",
    "video_id": "v",
    "kind": SKILLS,
    "version": "v1",
    "from_version": "v1",
    "to_version": "v2",
    "question_ids": ["q0"],
    "names": ["L3_0"],
    "name": "summary.json",
    "task_type": TYPE,
    "skill_sha256": "s",
    "prompts_version": "v1",
}


def _every_row(data: Path) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {}
    for path in sorted(data.rglob("*.db")):
        connection = sqlite3.connect(path)
        for table in sorted(Base.metadata.tables):
            rows[f"{path.parent.name}.{table}"] = sorted(connection.execute(f"select * from {table}"), key=repr)
        connection.close()
    return rows


def _every_file(data: Path) -> dict[str, bytes]:
    found = (path for path in data.rglob("*") if path.is_file() and ".db" not in path.name)
    return {str(path.relative_to(data)): path.read_bytes() for path in found}


async def _fill(client: StoreClient) -> None:
    await make_workspace(client)
    library = library_service_pb2.PutVideoRequest(video_id="v", tree_json=tree("v"))
    await client.library.PutVideo(library)
    frames = library_service_pb2.PutFramesRequest(video_id="v")
    frames.frames.add(name="L3_0", jpeg=b"\xff\xd8\xff\xd9")
    await client.library.PutFrames(frames)
    await register(client, "base", "baseline")
    await append(client, prediction("base", "q0"), trace("base", "q0", 0))
    await client.training.CommitStep(step_commit("base"))
    await client.workspaces.FreezePools(freeze(pools()))
    report = workspace_service_pb2.WriteReportRequest(workspace=WORKSPACE, name="summary.json", content=b"{}")
    await client.workspaces.WriteReport(report)
    seed = workspace_service_pb2.InitSeedRequest(
        name="start", source_workspace=WORKSPACE, source_run_id="base", skills_version="v1", prompts_version="v1"
    )
    await client.workspaces.InitSeed(seed)
    result = evaluation_pb2.BaselineResult(task_type=TYPE, skill_sha256="s", prompts_version="v1", unit_id="u")
    results = training_service_pb2.PutBaselineResultsRequest(workspace=WORKSPACE, results=[result])
    results.results[0].run_id = "base"
    await client.training.PutBaselineResults(results)
    calls = run_service_pb2.AppendLlmCallsRequest(workspace=WORKSPACE, calls=[llm_call_pb2.LlmCall(call_id="c")])
    await client.runs.AppendLlmCalls(calls)


def _reading_calls() -> list[tuple[str, str, type[Any], bool]]:
    calls = []
    for module in _MODULES:
        for service in module.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                if method.name.startswith(_READING):
                    request = getattr(module, method.input_type.name)
                    calls.append((service.name, method.name, request, method.server_streaming))
    return calls


async def test_sto_6_no_query_changes_any_row_or_file(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await _fill(client)
        stubs = {
            "LibraryService": client.library,
            "WorkspaceService": client.workspaces,
            "VersionService": client.versions,
            "RunService": client.runs,
            "TrainingService": client.training,
        }
        rows, files = _every_row(tmp_path), _every_file(tmp_path)
        calls = _reading_calls()
        assert len(calls) >= 25
        for service, method, request_type, streams in calls:
            known = {field.name for field in request_type.DESCRIPTOR.fields}
            request = request_type(**{name: value for name, value in _FIELDS.items() if name in known})
            call = getattr(stubs[service], method)(request)
            if streams:
                assert [message async for message in call]
            else:
                await call
            assert _every_row(tmp_path) == rows, method
            assert _every_file(tmp_path) == files, method


async def test_sto_6_opening_a_run_to_read_it_leaves_start_status_and_config(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
        before = (await register(client, "r")).run
        for _ in range(2):
            await client.runs.ListPredictions(run_service_pb2.ListPredictionsRequest(workspace=WORKSPACE, run_id="r"))
    async with serving(await disk_store_parts(tmp_path)) as client:
        request = run_service_pb2.GetRunRequest(workspace=WORKSPACE, run_id="r")
        assert (await client.runs.GetRun(request)).run == before
