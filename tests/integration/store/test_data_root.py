"""The store on a real data root: one owner, repair at start, copies, and what a person finds there."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode
from videotree.store.v1 import workspace_service_pb2 as pb

from services.runtime.config import ConfigError
from services.store.adapters.data_root_lock import DataRootLock
from services.store.domain.errors import DataRootInUse
from tests.builders.store_requests import (
    WORKSPACE,
    append,
    change,
    freeze,
    listed,
    make_workspace,
    manifest_of,
    pools,
    prediction,
    publish,
    refused,
    step_commit,
    trace,
    version_texts,
)
from tests.fakes.store_client import disk_store_parts, serving

ROOT = Path(__file__).resolve().parents[3]


def _folder(data: Path) -> Path:
    return data / "workspaces" / WORKSPACE


async def test_sto_1_a_second_store_on_the_root_exits_naming_root_and_owner(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)):
        environment = {**os.environ, "VIDEOTREE_DATA": str(tmp_path), "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}"}
        second = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "services.store.main", "--port", "0", "--metrics-port", "0"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
        )
    assert second.returncode != 0
    assert str(tmp_path) in second.stderr
    assert str(os.getpid()) in second.stderr
    assert "Traceback" not in second.stderr


def test_sto_1_the_lock_is_free_again_after_its_owner(tmp_path: Path) -> None:
    with DataRootLock(tmp_path), pytest.raises(DataRootInUse, match=str(os.getpid())):
        DataRootLock(tmp_path).acquire()
    with DataRootLock(tmp_path):
        pass


async def test_a_root_that_can_not_be_used_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="VIDEOTREE_DATA"):
        await disk_store_parts(tmp_path / "file")


async def test_sto_1_a_person_can_read_a_workspace_folder(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
        await client.training.CommitStep(step_commit())
        await client.workspaces.FreezePools(freeze(pools()))
        report = pb.WriteReportRequest(workspace=WORKSPACE, name="r/summary.json", content=b"{}")
        await client.workspaces.WriteReport(report)
        manifest = json.loads((_folder(tmp_path) / "manifest.json").read_text())
    assert manifest["current"] == {"videos": "library", "questions": "sample", "skills": "v2", "prompts": "v1"}
    assert (_folder(tmp_path) / "skills/v2/action-reasoning.md").read_text() == "look twice\n"
    meta = json.loads((_folder(tmp_path) / "skills/v2/meta.json").read_text())
    assert (meta["version"], meta["parent"], meta["source"]) == ("v2", "v1", "evolution")
    assert set(meta["file_sha256"]) == {"action-reasoning.md", "default-strategy.md"}
    found = {str(path.relative_to(_folder(tmp_path))) for path in _folder(tmp_path).rglob("*") if path.is_file()}
    assert {"pools.json", "split_manifest.json", "harness.db", "reports/r/summary.json"} <= found


async def test_sto_14_all_that_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
        await append(client, prediction("r", "q0"), trace("r", "q0", 0))
        committed = await client.training.CommitStep(step_commit())
    async with serving(await disk_store_parts(tmp_path)) as client:
        assert await manifest_of(client) == committed.manifest
        assert await listed(client) == [("r", "q0")]
        again = await client.training.CommitStep(step_commit())
        assert (again.already_committed, again.manifest) == (True, committed.manifest)


async def test_sto_4_a_lagging_or_missing_manifest_file_is_repaired_at_start(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
        path = _folder(tmp_path) / "manifest.json"
        old = path.read_bytes()
        await client.training.CommitStep(step_commit())
        new = path.read_bytes()
    assert old != new
    for content in (old, b"{ torn", None):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        await (await disk_store_parts(tmp_path)).close()
        assert path.read_bytes() == new


async def test_sto_3_a_version_folder_without_a_row_is_removed_at_start_and_its_number_is_free(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
    orphan = _folder(tmp_path) / "skills" / "v2"
    shutil.copytree(_folder(tmp_path) / "skills" / "v1", orphan)
    (_folder(tmp_path) / "skills" / ".tmp-v3-abc").mkdir()
    async with serving(await disk_store_parts(tmp_path)) as client:
        assert not orphan.exists()
        assert not list(_folder(tmp_path).glob("*/.tmp-*"))
        with refused(StatusCode.NOT_FOUND):
            await version_texts(client, "v2")
        assert (await publish(client, change({"a.md": "a"}, "v1"))).version.version == "v2"


async def test_sto_3_a_published_file_that_was_changed_on_disk_is_refused(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
        file = _folder(tmp_path) / "skills/v1/action-reasoning.md"
        for damage in (lambda: file.write_text("tampered"), file.unlink):
            damage()
            with refused(StatusCode.FAILED_PRECONDITION) as answer:
                await version_texts(client, "v1")
            assert "skills/v1/action-reasoning.md" in answer.message


async def test_sto_10_pools_that_were_changed_on_disk_are_refused_showing_both_hashes(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
        frozen = await client.workspaces.FreezePools(freeze(pools()))
        path = _folder(tmp_path) / "pools.json"
        path.write_text(path.read_text().replace('"test"', '"diag"'))
        with refused(StatusCode.FAILED_PRECONDITION) as answer:
            await client.workspaces.GetPools(pb.GetPoolsRequest(workspace=WORKSPACE))
        assert answer.metadata["recorded"] == frozen.pools_sha256
        assert answer.metadata["found"] not in ("", frozen.pools_sha256)
        path.unlink()
        with refused(StatusCode.FAILED_PRECONDITION):
            await client.workspaces.GetPools(pb.GetPoolsRequest(workspace=WORKSPACE))


async def test_sto_10_force_keeps_the_old_file_under_its_fingerprint(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
        await client.workspaces.FreezePools(freeze(pools()))
        old = (_folder(tmp_path) / "pools.json").read_bytes()
        answer = await client.workspaces.FreezePools(freeze(pools(u1="test"), force=True))
        assert (_folder(tmp_path) / answer.backup_name).read_bytes() == old


async def test_sto_10_a_forced_freeze_that_died_before_its_commit_is_undone_at_start(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
        frozen = await client.workspaces.FreezePools(freeze(pools()))
    folder = _folder(tmp_path)
    for name in ("pools.json", "split_manifest.json"):
        shutil.copy(folder / name, folder / f"{name}.bak.{frozen.pools_sha256[:8]}")
        (folder / name).write_text("{}")
    async with serving(await disk_store_parts(tmp_path)) as client:
        got = await client.workspaces.GetPools(pb.GetPoolsRequest(workspace=WORKSPACE))
        assert got.pools.sha256 == frozen.pools_sha256
        assert json.loads(got.split_manifest_json) == {"val_ratio": 0.4}


async def test_a_damaged_workspace_does_not_stop_the_others(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
        await make_workspace(client, "broken")
    (tmp_path / "workspaces" / "broken" / "harness.db").write_bytes(b"no database at all" * 1000)
    async with serving(await disk_store_parts(tmp_path)) as client:
        assert (await manifest_of(client)).name == WORKSPACE
        with refused(StatusCode.UNAVAILABLE) as answer:
            await manifest_of(client, "broken")
        assert answer.reason == "STORAGE_FAILED"


async def _write_until(stop: asyncio.Event, client: Any) -> int:
    written = 0
    while not stop.is_set():
        await append(client, prediction("r", f"q{written:05}"), trace("r", f"q{written:05}", 0))
        written += 1
    return written


async def test_sto_14_a_backup_made_while_writing_is_consistent(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
        await client.workspaces.FreezePools(freeze(pools()))
        stop = asyncio.Event()
        writing = asyncio.create_task(_write_until(stop, client))
        await asyncio.sleep(0.2)
        await client.training.CommitStep(step_commit())
        answer = await client.workspaces.Backup(pb.BackupRequest(workspace=WORKSPACE, backup="live"))
        stop.set()
        total = await writing
        copied = sqlite3.connect(Path(answer.path) / "harness.db")
        predictions, traces = (
            copied.execute(f"select count(*) from {table}").fetchone()[0] for table in ("predictions", "traces")
        )
        copied.close()
        assert 0 < predictions == traces <= total
        request = pb.RestoreRequest(backup="live", workspace="again")
        restored = (await client.workspaces.Restore(request)).manifest
        assert restored.current.skills == "v2"
        got = await client.workspaces.GetPools(pb.GetPoolsRequest(workspace="again"))
        assert list(got.pools.units) == list(pools().units)
    async with serving(await disk_store_parts(tmp_path)) as client:
        assert (await manifest_of(client, "again")).etag == restored.etag


@pytest.mark.parametrize("damage", ["changed", "missing", "added", "no index"])
async def test_sto_14_a_damaged_copy_is_not_restored(tmp_path: Path, damage: str) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
        answer = await client.workspaces.Backup(pb.BackupRequest(workspace=WORKSPACE, backup="copy"))
        copy = Path(answer.path)
        match damage:
            case "changed":
                (copy / "skills/v1/action-reasoning.md").write_text("other")
            case "missing":
                (copy / "harness.db").unlink()
            case "added":
                (copy / "skills/v1/more.md").write_text("more")
            case _:
                (copy / "backup.json").write_text("[]")
        with refused(StatusCode.FAILED_PRECONDITION):
            await client.workspaces.Restore(pb.RestoreRequest(backup="copy", workspace="again"))
        assert not (tmp_path / "workspaces" / "again").exists()
