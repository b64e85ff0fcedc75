"""QUA-14: no name of anything leads out of the data root, whichever service or command is given it."""

import asyncio
import threading
from pathlib import Path

import pytest
from videotree.inference.v1 import agent_pb2, agent_service_pb2
from videotree.store.v1 import (
    library_service_pb2,
    run_service_pb2,
    training_service_pb2,
    version_service_pb2,
    workspace_service_pb2,
)

from bench.any_request import TRAVERSALS, services_of
from bench.traversals import (
    REFUSED,
    SECRET,
    commands_with,
    is_refusal,
    outcomes_of,
    outside,
    plant_outside,
    refusal_of,
    requests_with,
    working_folder,
)
from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.testing import local_channel, local_server
from tests.builders.store_requests import WORKSPACE, make_workspace
from tests.fakes.store_client import disk_store_parts, store_client


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data root with something to steal beside it."""
    root = tmp_path / "outer" / "data"
    root.mkdir(parents=True)
    plant_outside(root)
    return root


@pytest.mark.parametrize("bad", TRAVERSALS)
async def test_qua_14_no_rpc_of_the_store_follows_a_name_out_of_its_root(data: Path, bad: str) -> None:
    before = outside(data)
    async with local_channel("store", await disk_store_parts(data)) as channel:
        await make_workspace(store_client(channel))
        for request in requests_with(bad, WORKSPACE):
            code, text = await refusal_of(channel, request)
            assert code in REFUSED, (request, text)
            assert SECRET not in text
    assert outside(data) == before
    assert [path for path in data.rglob("*") if "escape" in path.name] == []


def test_every_request_of_the_store_that_takes_a_name_is_tried() -> None:
    named = {"workspace", "name", "video_id", "dataset", "backup"}
    services = services_of(library_service_pb2, workspace_service_pb2, version_service_pb2, run_service_pb2,
                           training_service_pb2)  # fmt: skip
    methods = [method for service in services for method in service.methods]
    taking = {m.input_type.name for m in methods if named & set(m.input_type.fields_by_name)}
    tried = {request.DESCRIPTOR.name for request in requests_with("..", WORKSPACE)}
    assert taking - tried == set()


def test_the_agent_is_asked_with_names_too() -> None:
    """The messages of other services that carry names to the store hold no other path field than those tried above."""
    fields = {field.name for field in agent_service_pb2.AnswerQuestionsRequest.DESCRIPTOR.fields}
    fields |= {field.name for field in agent_pb2.SkillSet.DESCRIPTOR.fields}
    assert {"workspace", "dataset", "run_id", "prompts_version", "version", "overrides"} <= fields
    assert not [name for name in fields if "path" in name or "folder" in name]


class StoreThread:
    """The real store, with one workspace, in a thread with a loop of its own, for commands that run one themselves."""

    def __init__(self, data: Path) -> None:
        self._data, self._ready, self.port = data, threading.Event(), 0
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)

    async def _serve(self) -> None:
        async with (
            local_server("store", await disk_store_parts(self._data)) as running,
            open_channel(f"127.0.0.1:{running.port}", ClientCredentials()) as channel,
        ):
            await make_workspace(store_client(channel))
            self.port = running.port
            self._ready.set()
            await self._stop.wait()

    def __enter__(self) -> "StoreThread":
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        self._loop.close()


@pytest.mark.parametrize("bad", ["../../escape", "/etc/passwd", ".."])
def test_qua_14_no_command_follows_a_name_out_of_the_data_root(
    data: Path, bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(working_folder(data))
    before = outside(data)
    with StoreThread(data) as store:
        monkeypatch.setenv("VIDEOTREE_STORE_ADDRESS", f"127.0.0.1:{store.port}")
        commands = commands_with(bad, WORKSPACE)
        for command, (exit_code, output) in zip(commands, outcomes_of(commands), strict=True):
            assert is_refusal(exit_code, output), (command, exit_code, output)
    assert outside(data) == before
