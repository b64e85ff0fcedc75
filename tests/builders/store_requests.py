"""Small requests for the store, with the fields that a test does not care about filled in."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from videotree.store.v1 import (
    checkpoint_pb2,
    evolution_record_pb2,
    gate_record_pb2,
    library_service_pb2,
    pool_pb2,
    prediction_pb2,
    question_pb2,
    run_pb2,
    run_service_pb2,
    training_service_pb2,
    version_pb2,
    version_service_pb2,
    workspace_pb2,
    workspace_service_pb2,
)

from services.runtime.status import error_info, field_violations
from tests.fakes.store_client import StoreClient

SKILLS = version_pb2.VERSION_KIND_SKILLS
PROMPTS = version_pb2.VERSION_KIND_PROMPTS
WORKSPACE = "trial"
TYPE = "Action Reasoning"


def question(number: int, **fields: Any) -> question_pb2.Question:
    """Question `q<number>`."""
    values = {
        "question_id": f"q{number}",
        "video_id": "",
        "task_type": TYPE,
        "text": f"What happens at {number}?",
        "options": ["rain", "snow"],
        "answer": "A",
    }
    return question_pb2.Question(**{**values, **fields})


def tree(video_id: str, text: str = "A dog runs.") -> bytes:
    """A tree of one scene."""
    node = {"level": 1, "time_range": [0, 10], "card": {"scene_summary": text}, "subtitle": "", "children_ids": []}
    document = {"videoID": video_id, "duration_category": "short", "duration_seconds": 10, "domain": "pets"}
    return json.dumps({**document, "nodes": {f"{video_id}_L1_0": node}}).encode()


def prediction(run_id: str, question_id: str, **fields: Any) -> prediction_pb2.Prediction:
    """A right answer."""
    values = {
        "run_id": run_id,
        "question_id": question_id,
        "video_id": "v",
        "task_type": TYPE,
        "prediction": "A",
        "answer": "A",
        "correct": True,
        "evidence": ["v_L1_0"],
        "reasoning": "seen",
        "steps_used": 2,
        "stop_reason": "finished",
        "steps_json": '[{"tool":"view_node"}]',
        "unit_id": question_id,
    }
    return prediction_pb2.Prediction(**{**values, **fields})


def trace(run_id: str, question_id: str, step: int, output: str = "seen") -> prediction_pb2.Trace:
    """One tool call."""
    return prediction_pb2.Trace(
        run_id=run_id, question_id=question_id, step=step, tool="view_node", args_json="{}", output=output
    )


def change(overrides: dict[str, str], parent: str = "", **fields: Any) -> version_pb2.VersionChange:
    """A change of skills by evolution."""
    values: dict[str, Any] = {"kind": SKILLS, "source": version_pb2.VERSION_SOURCE_EVOLUTION}
    return version_pb2.VersionChange(**{**values, "overrides": overrides, "parent": parent, **fields})


def checkpoint(run_id: str = "r", **fields: Any) -> checkpoint_pb2.Checkpoint:
    """A checkpoint after the first step."""
    values: dict[str, Any] = {"schema_version": 1, "epoch": 0, "step": 1, "global_step": 1, "trainer_state_json": "{}"}
    return checkpoint_pb2.Checkpoint(run_id=run_id, **{**values, **fields})


def step_commit(run_id: str = "r", epoch: int = 0, step: int = 0, **fields: Any) -> Any:
    """A step with one gate that accepted."""
    values: dict[str, Any] = {
        "evidence": [
            gate_record_pb2.GateEvidence(task_type=TYPE, ladder_rank=rank, unit_id=f"u{rank}", cand_correct=True, w=1)
            for rank in range(2)
        ],
        "quadrants": [
            gate_record_pb2.QuadrantPair(
                task_type=TYPE, unit_id="u0", quadrant=gate_record_pb2.QUADRANT_WIN, consumed=True
            )
        ],
        "step_reports": [gate_record_pb2.StepReport(task_type=TYPE, gate_action="ACCEPT_CONFIRMED", w=2)],
        "evolution_records": [
            evolution_record_pb2.EvolutionRecord(target="action-reasoning.md", task_type=TYPE, status="accepted")
        ],
        "changes": [change({"action-reasoning.md": "look twice\n"})],
        "checkpoint": checkpoint(run_id),
    }
    return training_service_pb2.CommitStepRequest(
        workspace=WORKSPACE, run_id=run_id, epoch=epoch, step=step, **{**values, **fields}
    )


def pools(baseline: str = "base", **pool_of: str) -> pool_pb2.Pools:
    """A split of units named by keyword: `u1="diag"`."""
    chosen = pool_of or {"u1": "diag", "u2": "val", "u3": "test"}
    return pool_pb2.Pools(
        baseline_run_id=baseline,
        dataset="sample",
        units=[
            pool_pb2.PoolUnit(
                unit_id=unit,
                task_type=TYPE,
                video_id=f"v-{unit}",
                question_ids=[f"q-{unit}"],
                pool=pool_pb2.Pool.Value(f"POOL_{pool.upper()}"),
            )
            for unit, pool in chosen.items()
        ],
    )


def freeze(split: pool_pb2.Pools, *, force: bool = False, workspace: str = WORKSPACE) -> Any:
    """A request to freeze a split."""
    return workspace_service_pb2.FreezePoolsRequest(
        workspace=workspace, pools=split, split_manifest_json='{"val_ratio": 0.4}', force=force
    )


async def make_workspace(client: StoreClient, name: str = WORKSPACE, question_count: int = 3) -> workspace_pb2.Manifest:
    """A workspace with one skill, the default strategy and one prompt, over the question set `sample`."""
    questions = [question(number) for number in range(question_count)]
    await client.library.ImportQuestions(
        library_service_pb2.ImportQuestionsRequest(dataset="sample", questions=questions)
    )
    initial = workspace_service_pb2.InitialContent(
        dataset="sample",
        skills={"action-reasoning.md": "look\n", "default-strategy.md": "search\n"},
        prompts={"agent.system.md": "You answer.\n"},
    )
    answer = await client.workspaces.CreateWorkspace(
        workspace_service_pb2.CreateWorkspaceRequest(name=name, initial=initial)
    )
    return answer.manifest


async def append(client: StoreClient, *rows: prediction_pb2.Prediction | prediction_pb2.Trace) -> None:
    """Writes predictions and traces."""
    await client.runs.AppendPredictions(
        run_service_pb2.AppendPredictionsRequest(
            workspace=WORKSPACE,
            predictions=[row for row in rows if isinstance(row, prediction_pb2.Prediction)],
            traces=[row for row in rows if isinstance(row, prediction_pb2.Trace)],
        )
    )


async def listed(client: StoreClient, run_id: str = "", **fields: Any) -> list[tuple[str, str]]:
    """The (run, question) pairs of the predictions listed."""
    request = run_service_pb2.ListPredictionsRequest(workspace=WORKSPACE, run_id=run_id, **fields)
    answer = await client.runs.ListPredictions(request)
    return [(each.run_id, each.question_id) for each in answer.predictions]


async def register(client: StoreClient, run_id: str, kind: str = "train") -> run_service_pb2.RegisterRunResponse:
    """Registers a run."""
    run = run_pb2.Run(run_id=run_id, run_kind=kind, config_json='{"seed": 1}')
    return await client.runs.RegisterRun(run_service_pb2.RegisterRunRequest(workspace=WORKSPACE, run=run))


async def publish(client: StoreClient, wanted: version_pb2.VersionChange) -> version_service_pb2.PublishVersionResponse:
    """Publishes a version."""
    request = version_service_pb2.PublishVersionRequest(workspace=WORKSPACE, change=wanted)
    return await client.versions.PublishVersion(request)


async def version_texts(client: StoreClient, version: str, kind: Any = SKILLS) -> dict[str, str]:
    """A version's texts by file name."""
    request = version_service_pb2.GetVersionRequest(workspace=WORKSPACE, kind=kind, version=version)
    return {file.name: file.text for file in (await client.versions.GetVersion(request)).version.files}


async def manifest_of(client: StoreClient, workspace: str = WORKSPACE) -> workspace_pb2.Manifest:
    """A workspace's manifest."""
    request = workspace_service_pb2.GetWorkspaceRequest(workspace=workspace)
    return (await client.workspaces.GetWorkspace(request)).manifest


class Refused:
    """What a refused call was answered: filled when the `with` block ends."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code
        self._raises: Any = None
        self.message = ""
        self.reason = ""
        self.metadata: dict[str, str] = {}
        self.fields: dict[str, str] = {}

    def __enter__(self) -> Refused:
        self._raises = pytest.raises(grpc.aio.AioRpcError)
        self._caught = self._raises.__enter__()
        return self

    def __exit__(self, *error: Any) -> bool:
        handled = bool(self._raises.__exit__(*error))
        if handled:
            found = self._caught.value
            assert found.code() == self._code, found
            self.message = found.details() or ""
            info = error_info(found) or error_details_pb2.ErrorInfo()
            self.reason, self.metadata = info.reason, dict(info.metadata)
            self.fields = field_violations(found)
        return handled


def refused(code: grpc.StatusCode) -> Refused:
    """Expects a call to be refused with this code."""
    return Refused(code)
