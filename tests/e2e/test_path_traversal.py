"""QUA-14: no name of anything leads out of the data root, whichever service or command is given it."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner
from videotree.inference.v1 import agent_pb2, agent_service_pb2
from videotree.store.v1 import (
    library_service_pb2,
    run_pb2,
    run_service_pb2,
    training_service_pb2,
    version_service_pb2,
    workspace_service_pb2,
)

from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.testing import local_server
from services.trainer.cli.app import app
from tests.builders.any_request import TRAVERSALS
from tests.builders.store_requests import WORKSPACE, make_workspace
from tests.fakes.store_client import StoreClient, disk_store_parts, serving, store_client

REFUSED = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND}
SECRET = "what lies outside the data root"
w, lib, ver, run, trn = (
    workspace_service_pb2, library_service_pb2, version_service_pb2, run_service_pb2, training_service_pb2,
)  # fmt: skip


def initial(**names: str) -> workspace_service_pb2.InitialContent:
    skills = {names.get("skill", "a.md"): "text"}
    prompts = {names.get("prompt", "p.md"): "text"}
    return w.InitialContent(dataset=names.get("dataset", "sample"), skills=skills, prompts=prompts)


def seed(**fields: str) -> workspace_service_pb2.InitSeedRequest:
    sound = {"name": "start", "source_workspace": WORKSPACE, "source_run_id": "r"}
    return w.InitSeedRequest(**{**sound, **fields}, skills_version="v1", prompts_version="v1")


def attempts(client: StoreClient, bad: str) -> Iterator[Any]:
    """Every call that takes a name from outside, with a bad one in each of its places."""
    spaces, versions, runs, library, training = (
        client.workspaces, client.versions, client.runs, client.library, client.training,
    )  # fmt: skip
    yield spaces.CreateWorkspace(w.CreateWorkspaceRequest(name=bad, initial=initial()))
    yield spaces.CreateWorkspace(w.CreateWorkspaceRequest(name="new", seed=bad))
    yield spaces.CreateWorkspace(w.CreateWorkspaceRequest(name="new", initial=initial(skill=f"{bad}.md")))
    yield spaces.CreateWorkspace(w.CreateWorkspaceRequest(name="new", initial=initial(prompt=f"{bad}.md")))
    yield spaces.GetWorkspace(w.GetWorkspaceRequest(workspace=bad))
    yield spaces.GetPools(w.GetPoolsRequest(workspace=bad))
    yield spaces.InitSeed(seed(name=bad))
    yield spaces.InitSeed(seed(source_workspace=bad))
    yield spaces.WriteReport(w.WriteReportRequest(workspace=WORKSPACE, name=f"{bad}/report.html", content=b"x"))
    yield spaces.ReadReport(w.ReadReportRequest(workspace=WORKSPACE, name=f"{bad}/report.html"))
    yield spaces.ReadReport(w.ReadReportRequest(workspace=bad, name="report.html"))
    yield spaces.Backup(w.BackupRequest(workspace=WORKSPACE, backup=bad))
    yield spaces.Backup(w.BackupRequest(workspace=bad, backup="copy"))
    yield spaces.Restore(w.RestoreRequest(backup=bad, workspace="new"))
    yield spaces.Restore(w.RestoreRequest(backup="copy", workspace=bad))
    yield versions.GetVersion(ver.GetVersionRequest(workspace=WORKSPACE, kind=1, version=bad))
    yield versions.GetVersion(ver.GetVersionRequest(workspace=bad, kind=1, version="v1"))
    yield runs.RegisterRun(run.RegisterRunRequest(workspace=WORKSPACE, run=run_pb2.Run(run_id=bad, run_kind="train")))
    yield runs.GetRun(run.GetRunRequest(workspace=bad, run_id="r"))
    yield library.PutVideo(lib.PutVideoRequest(video_id=bad, tree_json=b"{}"))
    yield library.GetVideoTree(lib.GetVideoTreeRequest(video_id=bad))
    yield library.GetFrames(lib.GetFramesRequest(video_id=bad, names=["1.jpg"]))
    yield library.ImportQuestions(lib.ImportQuestionsRequest(dataset=bad))
    yield library.ListQuestions(lib.ListQuestionsRequest(dataset=bad))
    yield training.ClearStep(trn.ClearStepRequest(workspace=bad, run_id="r"))
    yield training.LoadCheckpoint(trn.LoadCheckpointRequest(workspace=bad, run_id="r"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data root with something to steal beside it, at each height that the bad names reach for."""
    root = tmp_path / "outer" / "data"
    root.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "outer"):
        for name in ("escape", "report.html", "escape.md", ".hidden"):
            (folder / name).write_text(SECRET)
    return root


def outside(data: Path) -> dict[Path, str]:
    top = data.parents[1]
    return {path: path.read_text() for path in top.rglob("*") if path.is_file() and not path.is_relative_to(data)}


@pytest.mark.parametrize("bad", TRAVERSALS)
async def test_qua_14_no_rpc_of_the_store_follows_a_name_out_of_its_root(data: Path, bad: str) -> None:
    before = outside(data)
    async with serving(await disk_store_parts(data)) as client:
        await make_workspace(client)
        for call in attempts(client, bad):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert caught.value.code() in REFUSED, (call, caught.value.details())
            assert SECRET not in (caught.value.details() or "")
    assert outside(data) == before
    assert [path for path in data.rglob("*") if "escape" in path.name] == []


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


def commands(bad: str) -> list[list[str]]:
    return [
        ["runs", "--workspace", bad],
        ["report", bad, "--workspace", WORKSPACE],
        ["report", "r", "--workspace", bad],
        ["diff", bad, "v1", "--workspace", WORKSPACE],
        ["diff", "v1", "v2", "--workspace", bad],
        ["rollback", bad, "--workspace", WORKSPACE],
        ["export", "out", "--version", bad, "--workspace", WORKSPACE],
        ["export", "out", "--workspace", bad],
        ["backup", bad, "--workspace", WORKSPACE],
        ["backup", "copy", "--workspace", bad],
        ["restore", bad, "new"],
        ["restore", "copy", bad],
        ["plan", "--workspace", bad],
        ["split", "--workspace", bad],
        ["seed", "create", bad, "--workspace", WORKSPACE],
        ["import", "questions", "questions.jsonl", "--dataset", bad],
    ]


@pytest.mark.parametrize("bad", ["../../escape", "/etc/passwd", ".."])
def test_qua_14_no_command_follows_a_name_out_of_the_data_root(
    data: Path, bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = data.parents[1] / "work"
    working.mkdir()
    (working / "questions.jsonl").write_text(
        '{"question_id": "q", "video_id": "v", "task_type": "T", "text": "t", "options": ["a", "b"], "answer": "A"}\n'
    )
    monkeypatch.chdir(working)
    before = outside(data)
    with StoreThread(data) as store:
        monkeypatch.setenv("VIDEOTREE_STORE_ADDRESS", f"127.0.0.1:{store.port}")
        for command in commands(bad):
            ended = CliRunner().invoke(app, command)
            assert ended.exit_code in (1, 2), (command, ended.output)
            assert SECRET not in ended.output
            assert "unexpected" not in ended.output, (command, ended.output)
            assert "Traceback" not in ended.output
    assert outside(data) == before
    assert not (data.parents[1] / "work" / "out").exists()
