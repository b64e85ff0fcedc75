"""Names that lead out of a folder, in every place that takes a name: the store's requests, the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from typer.testing import CliRunner
from videotree.store.v1 import (
    library_service_pb2,
    run_pb2,
    run_service_pb2,
    training_service_pb2,
    version_pb2,
    version_service_pb2,
    video_pb2,
    workspace_service_pb2,
)

from bench.any_request import services_of
from services.trainer.cli.app import app

REFUSED = frozenset({grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND})
SKILLS = version_pb2.VERSION_KIND_SKILLS
SECRET = "what lies outside the data root"
_MODULES = (library_service_pb2, workspace_service_pb2, version_service_pb2, run_service_pb2, training_service_pb2)
_SENTINELS = ("escape", "report.html", "escape.md", ".hidden")
w, lib, ver, run = workspace_service_pb2, library_service_pb2, version_service_pb2, run_service_pb2
METHODS: Mapping[str, str] = {
    method.input_type.full_name: f"/{service.full_name}/{method.name}"
    for service in services_of(*_MODULES)
    for method in service.methods
}
"""The path of each method of the store by its request."""


def requests_with(bad: str, workspace: str) -> Iterator[Message]:
    """Every request of the store that takes a name, with a bad one in each of its places and sound ones elsewhere."""
    yield from _in_other_places(bad, workspace)
    for service in services_of(*_MODULES):
        for method in service.methods:
            if "workspace" in method.input_type.fields_by_name:
                request: Any = GetMessageClass(method.input_type)()
                request.workspace = bad
                yield request


def _in_other_places(bad: str, workspace: str) -> Iterator[Message]:
    def initial(*, skill: str = "a.md", prompt: str = "p.md") -> workspace_service_pb2.InitialContent:
        return w.InitialContent(dataset="sample", skills={skill: "text"}, prompts={prompt: "text"})

    def seed(**fields: str) -> Message:
        sound: dict[str, Any] = {"name": "start", "source_workspace": workspace, "source_run_id": "r"}
        return w.InitSeedRequest(**{**sound, **fields}, skills_version="v1", prompts_version="v1")

    yield w.CreateWorkspaceRequest(name=bad, initial=initial())
    yield w.CreateWorkspaceRequest(name="new", seed=bad)
    yield w.CreateWorkspaceRequest(name="new", initial=initial(skill=f"{bad}.md"))
    yield w.CreateWorkspaceRequest(name="new", initial=initial(prompt=f"{bad}.md"))
    yield w.CreateWorkspaceRequest(name="new", initial=w.InitialContent(dataset=bad, skills={"a.md": "t"}))
    yield seed(name=bad)
    yield seed(source_workspace=bad)
    yield w.WriteReportRequest(workspace=workspace, name=f"{bad}/report.html", content=b"x")
    yield w.WriteReportRequest(workspace=workspace, name=bad, content=b"x")
    yield w.ReadReportRequest(workspace=workspace, name=f"{bad}/report.html")
    yield w.BackupRequest(workspace=workspace, backup=bad)
    yield w.RestoreRequest(backup=bad, workspace="new")
    yield w.RestoreRequest(backup="copy", workspace=bad)
    yield ver.GetVersionRequest(workspace=workspace, kind=SKILLS, version=bad)
    yield ver.DiffVersionsRequest(workspace=workspace, kind=SKILLS, from_version=bad, to_version="v1")
    yield run.RegisterRunRequest(workspace=workspace, run=run_pb2.Run(run_id=bad, run_kind="train"))
    yield lib.PutVideoRequest(video_id=bad, tree_json=b"{}")
    yield lib.GetVideoTreeRequest(video_id=bad)
    yield lib.GetFramesRequest(video_id=bad, names=["1.jpg"])
    yield lib.PutFramesRequest(video_id=bad, frames=[video_pb2.Frame(name="1", jpeg=b"x")])
    yield lib.ImportQuestionsRequest(dataset=bad)
    yield lib.ListQuestionsRequest(dataset=bad)
    yield lib.BatchGetQuestionsRequest(dataset=bad, question_ids=["q"])


def commands_with(bad: str, workspace: str) -> list[list[str]]:
    """Every command that takes a name, with a bad one; `questions.jsonl` lies in the working folder."""
    return [
        ["runs", "--workspace", bad],
        ["report", bad, "--workspace", workspace],
        ["report", "r", "--workspace", bad],
        ["diff", bad, "v1", "--workspace", workspace],
        ["diff", "v1", "v2", "--workspace", bad],
        ["rollback", bad, "--workspace", workspace],
        ["export", "out", "--version", bad, "--workspace", workspace],
        ["export", "out", "--workspace", bad],
        ["backup", bad, "--workspace", workspace],
        ["backup", "copy", "--workspace", bad],
        ["restore", bad, "new"],
        ["restore", "copy", bad],
        ["plan", "--workspace", bad],
        ["split", "--workspace", bad],
        ["seed", "create", bad, "--workspace", workspace],
        ["import", "questions", "questions.jsonl", "--dataset", bad],
    ]


def outcomes_of(commands: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    """Exit code and output of each command, run in this process; its main thread must be the caller."""
    ended = [CliRunner().invoke(app, list(command)) for command in commands]
    return [(each.exit_code, each.output) for each in ended]


def is_refusal(exit_code: int, output: str) -> bool:
    """Whether a command has refused clearly and given nothing away."""
    return exit_code in (1, 2) and not any(sign in output for sign in (SECRET, "unexpected", "Traceback"))


async def refusal_of(channel: grpc.aio.Channel, request: Message) -> tuple[grpc.StatusCode, str]:
    """The status and text with which the store answers a request; OK with the answer as text if it does not refuse."""
    call: Any = channel.unary_stream(
        METHODS[request.DESCRIPTOR.full_name], request_serializer=type(request).SerializeToString
    )(request, timeout=30)
    try:
        return grpc.StatusCode.OK, str([answer async for answer in call])
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""


def plant_outside(data: Path) -> None:
    """Puts something to steal or to overwrite beside a data root, at each height that the bad names reach for."""
    for folder in (data.parent, data.parent.parent):
        for name in _SENTINELS:
            (folder / name).write_text(SECRET)
    working_folder(data).mkdir()
    (working_folder(data) / "questions.jsonl").write_text(
        '{"question_id": "q", "video_id": "v", "task_type": "T", "text": "t", "options": ["a", "b"], "answer": "A"}\n'
    )


def working_folder(data: Path) -> Path:
    """Where commands are run."""
    return data.parent.parent / "work"


def outside(data: Path) -> dict[Path, bytes]:
    """Every file beside the data root, with its content."""
    top = data.parent.parent
    return {path: path.read_bytes() for path in top.rglob("*") if path.is_file() and not path.is_relative_to(data)}


if __name__ == "__main__":  # commands as JSON on standard input, outcomes as JSON on standard output
    json.dump(outcomes_of(json.load(sys.stdin)), sys.stdout)
