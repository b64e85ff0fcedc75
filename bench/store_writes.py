"""Everything that the store writes to files: one request for each, on a data root that holds something of each kind."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import Message
from videotree.store.v1 import checkpoint_pb2 as checkpoints
from videotree.store.v1 import library_service_pb2 as library
from videotree.store.v1 import pool_pb2 as pools
from videotree.store.v1 import prediction_pb2 as predictions
from videotree.store.v1 import question_pb2 as questions
from videotree.store.v1 import run_pb2, version_pb2
from videotree.store.v1 import run_service_pb2 as runs
from videotree.store.v1 import training_service_pb2 as training
from videotree.store.v1 import version_service_pb2 as versions
from videotree.store.v1 import video_pb2 as videos
from videotree.store.v1 import workspace_service_pb2 as workspaces

from bench.store_in_process import OpenStore, call_once

SPACE, TYPE = "trial", "Action Reasoning"
SKILLS, PROMPTS = version_pb2.VERSION_KIND_SKILLS, version_pb2.VERSION_KIND_PROMPTS
Call = tuple[str, Message]


@dataclass(frozen=True, slots=True)
class Write:
    """A request, or a start, and what has to be done to the data root before it."""

    call: Call | None
    prepare: Callable[[Path], None] | None = None


def _question(number: int, text: str) -> questions.Question:
    options = ["rain", "snow"]
    return questions.Question(question_id=f"q{number}", task_type=TYPE, text=text, options=options, answer="A")


def _dataset(name: str, text: str) -> Call:
    asked = [_question(number, f"{text} {number}?") for number in range(40)]
    return "ImportQuestions", library.ImportQuestionsRequest(dataset=name, questions=asked, force=True)


def _video(video_id: str, text: str) -> Call:
    node = {"level": 1, "time_range": [0, 10], "card": {"scene_summary": text}, "subtitle": "", "children_ids": []}
    about = {"videoID": video_id, "duration_category": "short", "duration_seconds": 10, "domain": "pets"}
    content = json.dumps({**about, "nodes": {f"{video_id}_L1_0": node}}).encode()
    return "PutVideo", library.PutVideoRequest(video_id=video_id, tree_json=content, force=True)


def _frames(names: Sequence[str], inside: bytes) -> Call:
    jpeg = b"\xff\xd8\xff\xe0" + inside * 500 + b"\xff\xd9"
    return "PutFrames", library.PutFramesRequest(
        video_id="v", frames=[videos.Frame(name=name, jpeg=jpeg) for name in names]
    )


def _workspace(name: str, *, text: str = "look\n", force: bool = False) -> Call:
    skills = {"action-reasoning.md": text, "default-strategy.md": "search\n"}
    initial = workspaces.InitialContent(dataset="sample", skills=skills, prompts={"agent.system.md": "You answer.\n"})
    return "CreateWorkspace", workspaces.CreateWorkspaceRequest(name=name, initial=initial, force=force)


def _freeze(*names: str) -> Call:
    units = [
        pools.PoolUnit(unit_id=name, task_type=TYPE, question_ids=[f"q-{name}"], pool=pools.POOL_VAL) for name in names
    ]
    split = pools.Pools(baseline_run_id="base", dataset="sample", units=units)
    manifest = json.dumps({"units": len(names)})
    return "FreezePools", workspaces.FreezePoolsRequest(
        workspace=SPACE, pools=split, split_manifest_json=manifest, force=True
    )


def _seed(name: str, *, with_pools: bool) -> Call:
    return "InitSeed", workspaces.InitSeedRequest(
        name=name, source_workspace=SPACE, source_run_id="base", skills_version="v1", prompts_version="v1",
        with_pools=with_pools, force=True,
    )  # fmt: skip


def _report(name: str, content: bytes) -> Call:
    return "WriteReport", workspaces.WriteReportRequest(workspace=SPACE, name=name, content=content)


def _change(text: str, **fields: Any) -> version_pb2.VersionChange:
    overrides = {"action-reasoning.md": text, "counting.md": text * 100}
    source = version_pb2.VERSION_SOURCE_EVOLUTION
    return version_pb2.VersionChange(kind=SKILLS, source=source, parent="v1", overrides=overrides, **fields)


def _commit() -> Call:
    checkpoint = checkpoints.Checkpoint(
        run_id="r", schema_version=1, epoch=0, step=1, global_step=1, trainer_state_json="{}"
    )
    return "CommitStep", training.CommitStepRequest(
        workspace=SPACE, run_id="r", epoch=0, step=0, changes=[_change("look twice\n")], checkpoint=checkpoint
    )


FIRST: Sequence[Call] = (
    _dataset("sample", "What happens at"),
    _dataset("spare", "What happens at"),
    _video("v", "A dog runs."),
    _frames(["a", "b"], b"old"),
    _workspace(SPACE),
    ("RegisterRun", runs.RegisterRunRequest(
        workspace=SPACE, run=run_pb2.Run(run_id="base", run_kind="baseline", config_json="{}"))),
    ("AppendPredictions", runs.AppendPredictionsRequest(workspace=SPACE, predictions=[
        predictions.Prediction(run_id="base", question_id=f"q{number}", task_type=TYPE, prediction="A",
                               answer="A", correct=True, steps_json="[]", unit_id=f"q{number}")
        for number in range(40)])),
    _freeze("u1", "u2"),
    _report("base/report.html", b"<p>old</p>" * 1000),
    _seed("start", with_pools=True),
    ("Backup", workspaces.BackupRequest(workspace=SPACE, backup="copy")),
)  # fmt: skip
"""What the data root holds before each write."""


def _without_its_commit(call: Call) -> Callable[[Path], None]:
    """As if the process had died between a request's files and its commit: its files, and the databases of before."""

    def prepare(root: Path) -> None:
        before = root.with_name("before")
        shutil.copytree(root, before)
        asyncio.run(call_once(root, call))
        for database in before.rglob("*.db*"):
            shutil.copyfile(database, root / database.relative_to(before))
        shutil.rmtree(before)

    return prepare


def _unfinished_addition(root: Path) -> None:
    complete = root / "library" / "videos" / "v" / ".add-frames"
    complete.mkdir()
    for name in ("a.jpg", "c.jpg"):
        (complete / name).write_bytes(b"\xff\xd8\xff\xe0added\xff\xd9")


def _half_replaced(root: Path) -> None:
    """The old workspace was renamed away, the new one waits."""
    (root / "workspaces" / SPACE).rename(root / "workspaces" / f".new-{SPACE}")


def _lagging_manifest(root: Path) -> None:
    (root / "workspaces" / SPACE / "manifest.json").write_text("{}")


WRITES: Mapping[str, Write] = {
    "a first question set": Write(_dataset("other", "Who came at")),
    "a question set replaced": Write(_dataset("spare", "Who came at")),
    "a first tree": Write(_video("w", "A cat sleeps.")),
    "a tree replaced": Write(_video("v", "A cat sleeps.")),
    "frames added and replaced": Write(_frames(["b", "c", "d"], b"new")),
    "a new workspace": Write(_workspace("other")),
    "a workspace replaced": Write(_workspace(SPACE, text="look elsewhere\n", force=True)),
    "a workspace from a seed": Write(
        ("CreateWorkspace", workspaces.CreateWorkspaceRequest(name="grown", seed="start"))
    ),
    "a manifest": Write(("RecordRun", workspaces.RecordRunRequest(workspace=SPACE, run_id="base"))),
    "a version": Write(
        ("PublishVersion", versions.PublishVersionRequest(workspace=SPACE, change=_change("look twice\n")))
    ),
    "a step with a version": Write(_commit()),
    "pools and split manifest frozen anew": Write(_freeze("u1", "u2", "u3")),
    "a first report": Write(_report("r/summary.json", b'{"accepted": 1}' * 500)),
    "a report replaced": Write(_report("base/report.html", b"<p>new</p>" * 2000)),
    "a first seed": Write(_seed("second", with_pools=True)),
    "a seed replaced": Write(_seed("start", with_pools=False)),
    "a backup": Write(("Backup", workspaces.BackupRequest(workspace=SPACE, backup="second"))),
    "a restored backup": Write(("Restore", workspaces.RestoreRequest(backup="copy", workspace="restored"))),
    "the start after half of a replacement": Write(None, _half_replaced),
    "the start after an addition": Write(None, _unfinished_addition),
    "the start after a freeze without its commit": Write(None, _without_its_commit(_freeze("u1", "u2", "u3"))),
    "the start after a version without its commit": Write(None, _without_its_commit(_commit())),
    "the start after a commit without its manifest": Write(None, _lagging_manifest),
}


async def prepare(store: OpenStore) -> None:
    """Fills an empty store."""
    for method, request in FIRST:
        await store.call(method, request)


READS: Sequence[Call] = (
    ("ListWorkspaces", workspaces.ListWorkspacesRequest()),
    ("ListSeeds", workspaces.ListSeedsRequest()),
    ("ListVideos", library.ListVideosRequest()),
    ("ListDatasets", library.ListDatasetsRequest()),
    *(("ListQuestions", library.ListQuestionsRequest(dataset=name)) for name in ("sample", "spare", "other")),
    *(("GetVideoTree", library.GetVideoTreeRequest(video_id=name)) for name in ("v", "w")),
    *(("GetFrames", library.GetFramesRequest(video_id="v", names=[name])) for name in "abcd"),
    *(
        (method, kind(workspace=name))
        for name in (SPACE, "other", "grown", "restored")
        for method, kind in (("GetWorkspace", workspaces.GetWorkspaceRequest), ("GetPools", workspaces.GetPoolsRequest))
    ),
    *(
        ("GetVersion", versions.GetVersionRequest(workspace=name, kind=kind, version=version))
        for name in (SPACE, "other", "grown", "restored")
        for kind in (SKILLS, PROMPTS)
        for version in ("v1", "v2")
    ),
    *(
        ("ReadReport", workspaces.ReadReportRequest(workspace=SPACE, name=name))
        for name in ("base/report.html", "r/summary.json")
    ),
)
"""What a client can see of all that."""
