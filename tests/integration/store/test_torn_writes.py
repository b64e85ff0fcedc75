"""QUA-12 at the store's own requests; `python -m bench.torn_writes` is the long form."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.message import Message
from videotree.store.v1 import pool_pb2
from videotree.store.v1.library_service_pb2 import ListVideosRequest
from videotree.store.v1.workspace_service_pb2 import FreezePoolsRequest, GetPoolsRequest

from bench.breaking_files import BreakableOperations
from bench.store_in_process import OpenStore, open_store
from bench.store_writes import SPACE, TYPE, WRITES, prepare
from services.store.domain.errors import StorageFailed, StoreError

ROOT = Path(__file__).resolve().parents[3]
CARELESS = """
import sys
from bench import torn_writes
from services.store.adapters.atomic_files import AtomicFiles

def write_file(self, path, data):  # in place, as if there were no crashes
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as handle:
        self._operations.write(handle, data)

AtomicFiles.write_file = write_file
sys.exit(torn_writes.main(sys.argv[1:]))
"""


def run_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: it forks, which a process with threads should not."""
    paths = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "gen")))}
    command = [sys.executable, *arguments, "--no-results"]
    return subprocess.run(command, env={**os.environ, **paths}, capture_output=True, text=True, timeout=300)


async def test_qua_12_a_first_tree_whose_write_fails_is_no_video(tmp_path: Path) -> None:
    async with open_store(tmp_path, broken := BreakableOperations(armed=False)) as store:
        await prepare(store)
        first = WRITES["a first tree"].call
        assert first is not None
        broken.arm(2)  # the folder of the video is there by then
        with pytest.raises(StorageFailed):
            await store.call(*first)
        broken.armed = False
        listed = await store.call("ListVideos", ListVideosRequest())
        assert [video.video_id for video in listed.videos] == ["v"]
        await store.call(*first)
        listed = await store.call("ListVideos", ListVideosRequest())
        assert [video.video_id for video in listed.videos] == ["v", "w"]


@pytest.mark.parametrize("wanted", ["a workspace replaced", "a seed replaced"])
def test_qua_12_a_replaced_folder_is_the_old_or_the_new_around_its_exchange(tmp_path: Path, wanted: str) -> None:
    """The last steps of these, at which the one goes and the other comes."""
    ended = run_bench("-m", "bench.torn_writes", "--only", wanted, "--last", "24")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def freeze(*units: str) -> Message:
    """A forced freeze of these units; the split manifest counts them."""
    split = pool_pb2.Pools(
        baseline_run_id="base",
        dataset="sample",
        units=[
            pool_pb2.PoolUnit(unit_id=each, task_type=TYPE, question_ids=[f"q-{each}"], pool=pool_pb2.POOL_VAL)
            for each in units
        ],
    )
    return FreezePoolsRequest(
        workspace=SPACE, pools=split, split_manifest_json=json.dumps({"units": len(units)}), force=True
    )


async def frozen_units(store: OpenStore) -> tuple[list[str], int]:
    """The units of the frozen split, and how many its manifest counts."""
    answer = await store.call("GetPools", GetPoolsRequest(workspace=SPACE))
    return [each.unit_id for each in answer.pools.units], json.loads(answer.split_manifest_json)["units"]


@pytest.mark.parametrize("attempts", [1, 2])
async def test_qua_12_a_forced_freeze_that_fails_leaves_pools_and_their_own_split_manifest(
    tmp_path: Path, attempts: int
) -> None:
    async with open_store(tmp_path / "counted") as store:
        await prepare(store)
    shutil.copytree(tmp_path / "counted", tmp_path / "data")
    counting = BreakableOperations(armed=False)
    async with open_store(tmp_path / "counted", counting) as store:
        old = await frozen_units(store)
        counting.armed = True
        await store.call("FreezePools", freeze("u1", "u2", "u3"))
        counting.armed = False
        new = await frozen_units(store)
    assert (old, new) == ((["u1", "u2"], 2), (["u1", "u2", "u3"], 3))
    seen = set()
    for at in range(1, len(counting.steps) + 1):
        root = tmp_path / str(at)
        shutil.copytree(tmp_path / "data", root)
        async with open_store(root, broken := BreakableOperations(armed=False)) as store:
            for _ in range(attempts):  # without a start between them
                broken.arm(at)
                with contextlib.suppress(StoreError):
                    await store.call("FreezePools", freeze("u1", "u2", "u3"))
                broken.armed = False
        async with open_store(root) as store:
            seen.add(str(await frozen_units(store)))
            assert await frozen_units(store) in (old, new), counting.steps[at - 1]
    assert seen == {str(old), str(new)}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_qua_12_interrupted_requests_leave_all_that_was_or_all_that_is_wanted() -> None:
    wanted = ["a report replaced", "a version", "pools and split manifest frozen anew", "frames added and replaced",
              "a manifest", "the start after a freeze without its commit"]  # fmt: skip
    ended = run_bench("-m", "bench.torn_writes", *(part for name in wanted for part in ("--only", name)), "--quick")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "of 6 kinds of writes" in ended.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_qua_12_a_store_that_writes_in_place_is_found_torn() -> None:
    ended = run_bench("-c", CARELESS, "--only", "a report replaced", "--quick")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "torn: a report replaced: " in ended.stderr
    assert "the files of workspaces/trial/reports/base/report.html" in ended.stderr
