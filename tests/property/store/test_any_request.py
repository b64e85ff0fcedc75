"""QUA-13: any field of any request to the store may hold anything; what is refused is clear, and changes nothing."""

import random
from pathlib import Path

from videotree.store.v1 import (
    library_service_pb2,
    run_service_pb2,
    training_service_pb2,
    version_service_pb2,
    workspace_service_pb2,
)

from bench.all_services import StoreWatch
from bench.any_request import Answers, ask_anything, services_of
from services.runtime.testing import local_channel
from tests.builders.depth import SCALE
from tests.builders.store_requests import WORKSPACE, append, make_workspace, prediction
from tests.fakes.store_client import disk_store_parts, store_client

MODULES = (library_service_pb2, workspace_service_pb2, version_service_pb2, run_service_pb2, training_service_pb2)
SOUND = {
    "workspace": [WORKSPACE], "name": [WORKSPACE, "other"], "run_id": ["r"], "dataset": ["sample"], "kind": [1, 2],
    "version": ["v1"], "page_size": [0, 10], "page_token": [""], "epoch": [0], "step": [0], "config_json": ["{}"],
}  # fmt: skip


async def test_qua_13_any_field_may_hold_anything(tmp_path: Path) -> None:
    data = tmp_path / "outer" / "data"
    data.mkdir(parents=True)
    rng, answers, watch = random.Random(11), Answers(), StoreWatch(data)
    async with local_channel("store", await disk_store_parts(data)) as channel:
        client = store_client(channel)
        await make_workspace(client)
        for _ in range(12 * SCALE):
            for service in services_of(*MODULES):
                await ask_anything(channel, service, rng, SOUND, answers, effects=watch)
        await append(client, prediction("still", "works"))
    watch.close()
    assert answers.tally.faults == []
    assert {"GetWorkspace", "ListRuns", "WriteReport", "RecordRun"} <= set(answers.by_method)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_relative_to(data)] == []
    assert not [path for path in data.rglob("*") if path.name.startswith(".tmp-")]


async def test_a_change_by_a_refused_request_would_be_seen(tmp_path: Path) -> None:
    watch = StoreWatch(tmp_path)
    async with local_channel("store", await disk_store_parts(tmp_path)) as channel:
        client = store_client(channel)
        await make_workspace(client)
        before = watch()
        assert watch() == before
        await append(client, prediction("r", "q"))
        after = watch()
        assert after != before
        (tmp_path / "workspaces" / WORKSPACE / "stray").touch()
        assert watch() != after
    watch.close()
