"""Workspaces, manifests, reports and backups (STO-4, STO-11, STO-14), on every store."""

from __future__ import annotations

import pytest
from grpc import StatusCode
from videotree.store.v1 import workspace_pb2
from videotree.store.v1 import workspace_service_pb2 as pb

from tests.builders.store_requests import (
    PROMPTS,
    WORKSPACE,
    append,
    change,
    listed,
    make_workspace,
    manifest_of,
    prediction,
    publish,
    refused,
    version_texts,
)
from tests.fakes.store_client import StoreClient


async def test_sto_4_a_new_workspace_uses_its_first_versions(client: StoreClient) -> None:
    manifest = await make_workspace(client)
    assert manifest.current == workspace_pb2.CurrentVersions(
        videos="library", questions="sample", skills="v1", prompts="v1"
    )
    assert manifest.etag
    assert not manifest.best.HasField("hard")
    assert await manifest_of(client) == manifest
    assert await version_texts(client, "v1", PROMPTS) == {"agent.system.md": "You answer.\n"}


@pytest.mark.parametrize("name", ["", "..", "../w", "a/b", "W", ".w", "w\0", "w" * 201])
async def test_qua_14_a_workspace_name_that_could_leave_its_folder_is_refused(client: StoreClient, name: str) -> None:
    with refused(StatusCode.INVALID_ARGUMENT):
        await make_workspace(client, name)
    with refused(StatusCode.INVALID_ARGUMENT):
        await manifest_of(client, name)


async def test_sto_11_an_existing_workspace_is_replaced_only_with_force(client: StoreClient) -> None:
    await make_workspace(client)
    await append(client, prediction("r", "q0"))
    with refused(StatusCode.ALREADY_EXISTS):
        await make_workspace(client)
    assert await listed(client) == [("r", "q0")]
    initial = pb.InitialContent(dataset="sample", skills={"a.md": "a"}, prompts={"p.md": "p"})
    await client.workspaces.CreateWorkspace(pb.CreateWorkspaceRequest(name=WORKSPACE, initial=initial, force=True))
    assert await listed(client) == []
    assert await version_texts(client, "v1") == {"a.md": "a"}


async def test_a_workspace_that_can_not_be_filled_does_not_appear(client: StoreClient) -> None:
    await make_workspace(client, "other")
    initial = pb.InitialContent(dataset="sample", skills={"a.md": "a"}, prompts={"BAD": "p"})
    with refused(StatusCode.INVALID_ARGUMENT):
        await client.workspaces.CreateWorkspace(pb.CreateWorkspaceRequest(name=WORKSPACE, initial=initial))
    with refused(StatusCode.NOT_FOUND):
        await manifest_of(client)


async def test_creating_needs_an_origin_that_exists(client: StoreClient) -> None:
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.workspaces.CreateWorkspace(pb.CreateWorkspaceRequest(name=WORKSPACE))
    assert list(answer.fields) == ["origin"]
    with refused(StatusCode.NOT_FOUND):
        await client.workspaces.CreateWorkspace(pb.CreateWorkspaceRequest(name=WORKSPACE, seed="none"))
    with refused(StatusCode.NOT_FOUND):
        initial = pb.InitialContent(dataset="none", skills={"a.md": "a"}, prompts={"p.md": "p"})
        await client.workspaces.CreateWorkspace(pb.CreateWorkspaceRequest(name=WORKSPACE, initial=initial))


async def test_sto_4_an_update_needs_the_etag_that_was_read(client: StoreClient) -> None:
    manifest = await make_workspace(client)
    await publish(client, change({"a.md": "a"}, "v1"))
    request = pb.UpdateManifestRequest(workspace=WORKSPACE, current={"skills": "v2"}, etag=manifest.etag)
    updated = (await client.workspaces.UpdateManifest(request)).manifest
    assert updated.current.skills == "v2"
    assert updated.etag != manifest.etag
    with refused(StatusCode.ABORTED) as answer:
        await client.workspaces.UpdateManifest(request)
    assert answer.reason == "STALE_ETAG"
    assert answer.metadata["current_etag"] == updated.etag
    request.etag = ""
    with refused(StatusCode.INVALID_ARGUMENT):
        await client.workspaces.UpdateManifest(request)
    assert await manifest_of(client) == updated


@pytest.mark.parametrize(
    ("current", "reason"),
    [
        ({"colour": "red"}, "UNKNOWN_MANIFEST_KEY"),
        ({"skills": "v9"}, "INVALID_REQUEST"),
        ({"skills": "../v1"}, "INVALID_NAME"),
        ({"questions": "none"}, "INVALID_REQUEST"),
        ({"videos": "../x"}, "INVALID_NAME"),
        ({"prompts": ""}, "INVALID_NAME"),
    ],
)
async def test_sto_4_an_unknown_key_or_version_is_refused(
    client: StoreClient, current: dict[str, str], reason: str
) -> None:
    manifest = await make_workspace(client)
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        request = pb.UpdateManifestRequest(workspace=WORKSPACE, current=current, etag=manifest.etag)
        await client.workspaces.UpdateManifest(request)
    assert answer.reason == reason
    assert await manifest_of(client) == manifest


async def test_sto_4_best_entries_are_replaced_one_by_one(client: StoreClient) -> None:
    manifest = await make_workspace(client)
    hard = workspace_pb2.BestEntry(skills="v1", prompts="v1", score=0.5, epoch=-1, run_id="r")
    request = pb.UpdateBestRequest(workspace=WORKSPACE, best=workspace_pb2.Best(hard=hard), etag=manifest.etag)
    manifest = (await client.workspaces.UpdateBest(request)).manifest
    assert manifest.best.hard == hard
    mixed = workspace_pb2.BestEntry(skills="v1", prompts="v1", score=0.25, epoch=1, run_id="r")
    request = pb.UpdateBestRequest(workspace=WORKSPACE, best=workspace_pb2.Best(mixed=mixed), etag=manifest.etag)
    manifest = (await client.workspaces.UpdateBest(request)).manifest
    assert (manifest.best.hard, manifest.best.mixed) == (hard, mixed)


@pytest.mark.parametrize(
    ("field", "value"),
    [("score", float("nan")), ("score", 1.1), ("score", -0.1), ("epoch", -2), ("skills", "v9"), ("prompts", "x")],
)
async def test_sto_4_a_best_entry_out_of_range_is_refused_by_field(
    client: StoreClient, field: str, value: float | str
) -> None:
    manifest = await make_workspace(client)
    entry = workspace_pb2.BestEntry(skills="v1", prompts="v1", score=0.5, epoch=0, run_id="r")
    setattr(entry, field, value)
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        request = pb.UpdateBestRequest(workspace=WORKSPACE, best=workspace_pb2.Best(hard=entry), etag=manifest.etag)
        await client.workspaces.UpdateBest(request)
    assert list(answer.fields) == [f"best.hard.{field}"]


async def test_sto_4_a_run_is_recorded_once_with_a_snapshot_of_current(client: StoreClient) -> None:
    manifest = await make_workspace(client)
    record = pb.RecordRunRequest(workspace=WORKSPACE, run_id="r")
    first = (await client.workspaces.RecordRun(record)).manifest
    await publish(client, change({"a.md": "a"}, "v1"))
    update = pb.UpdateManifestRequest(workspace=WORKSPACE, current={"skills": "v2"}, etag=first.etag)
    await client.workspaces.UpdateManifest(update)
    again = (await client.workspaces.RecordRun(record)).manifest
    assert [(each.run_id, each.current.skills) for each in again.history] == [("r", "v1")]
    assert manifest.etag != first.etag


async def test_sto_13_workspaces_are_listed_by_name_page_by_page(client: StoreClient) -> None:
    for name in ("b", "a", "c"):
        await make_workspace(client, name)
    first = await client.workspaces.ListWorkspaces(pb.ListWorkspacesRequest(page_size=2))
    rest = pb.ListWorkspacesRequest(page_size=2, page_token=first.next_page_token)
    second = await client.workspaces.ListWorkspaces(rest)
    assert [each.name for each in [*first.manifests, *second.manifests]] == ["a", "b", "c"]


async def test_reports_are_written_and_read_below_their_folder(client: StoreClient) -> None:
    await make_workspace(client)
    for name, content in (("summary.json", b"{}"), ("run-1/page.html", b"\xff\x00")):
        request = pb.WriteReportRequest(workspace=WORKSPACE, name=name, content=content)
        assert (await client.workspaces.WriteReport(request)).path.endswith(f"/reports/{name}")
        read = await client.workspaces.ReadReport(pb.ReadReportRequest(workspace=WORKSPACE, name=name))
        assert read.content == content
    with refused(StatusCode.NOT_FOUND):
        await client.workspaces.ReadReport(pb.ReadReportRequest(workspace=WORKSPACE, name="none"))


@pytest.mark.parametrize("name", ["", "/x", "../manifest.json", "a/../b", "a/b/c", "a//b", "a/", ".x", "A.html"])
async def test_qua_14_a_report_name_that_could_leave_its_folder_is_refused(client: StoreClient, name: str) -> None:
    await make_workspace(client)
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.workspaces.WriteReport(pb.WriteReportRequest(workspace=WORKSPACE, name=name, content=b"x"))
    assert list(answer.fields) == ["name"]
    with refused(StatusCode.INVALID_ARGUMENT):
        await client.workspaces.ReadReport(pb.ReadReportRequest(workspace=WORKSPACE, name=name))


async def test_sto_14_a_restored_copy_works_on_and_nothing_is_overwritten(client: StoreClient) -> None:
    await make_workspace(client)
    await publish(client, change({"a.md": "a"}, "v1"))
    await append(client, prediction("r", "q0"))
    backup = pb.BackupRequest(workspace=WORKSPACE, backup="copy")
    assert (await client.workspaces.Backup(backup)).size_bytes > 0
    with refused(StatusCode.ALREADY_EXISTS):
        await client.workspaces.Backup(backup)
    await append(client, prediction("r", "q1"))
    with refused(StatusCode.ALREADY_EXISTS):
        await client.workspaces.Restore(pb.RestoreRequest(backup="copy", workspace=WORKSPACE))
    restored = (await client.workspaces.Restore(pb.RestoreRequest(backup="copy", workspace="again"))).manifest
    assert restored.name == "again"
    assert (await manifest_of(client, "again")).etag == restored.etag
    request = pb.UpdateManifestRequest(workspace="again", current={"skills": "v2"}, etag=restored.etag)
    assert (await client.workspaces.UpdateManifest(request)).manifest.current.skills == "v2"
    assert await listed(client) == [("r", "q0"), ("r", "q1")]
    with refused(StatusCode.NOT_FOUND):
        await client.workspaces.Restore(pb.RestoreRequest(backup="none", workspace="more"))
