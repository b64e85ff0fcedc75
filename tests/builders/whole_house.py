"""Real store, inference and gate on real sockets over the simulated model, in this process."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from videotree.gate.v1 import gate_service_pb2 as pb
from videotree.gate.v1 import gate_service_pb2_grpc, round_pb2
from videotree.store.v1 import library_service_pb2, pool_pb2, question_pb2
from videotree.store.v1 import workspace_service_pb2 as workspaces

from services.gate.config import GateConfig
from services.gate.main import build as build_gate
from services.inference.config import InferenceConfig
from services.inference.main import build as build_inference
from services.questions import Question
from services.runtime.bundled import bundled_path
from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.testing import local_channel, local_server
from services.simulator.domain.answers import Answers
from services.simulator.http_edge.server import SimulatorServer
from services.skills import slug
from services.store.config import StoreConfig
from services.store.main import build as build_store
from services.templates import read_folder
from tests.builders.simulated_world import knowledge
from tests.fakes.store_client import StoreClient, store_client

Outcomes = Mapping[str, round_pb2.GateOutcome]
"""Outcomes of a round by task type."""


@dataclass(frozen=True)
class Content:
    """What the house holds: the model's world (TOML), the questions of dataset `d`, the skills of version v1."""

    world: str
    questions: Sequence[Question]
    skills: Mapping[str, str]


@dataclass(frozen=True)
class House:
    """The gate and the store, with workspace `w` whose every question is a unit of val."""

    gate: gate_service_pb2_grpc.GateServiceStub
    store: StoreClient

    async def outcomes(self, request: pb.ValidateSkillsRequest) -> Outcomes:
        """Run a round to its end."""
        messages = [message async for message in self.gate.ValidateSkills(request)]
        return {one.task_type: one for one in messages[-1].outcome.outcomes}


def numbered_questions(task_types: Sequence[str], length: int) -> list[Question]:
    """`length` questions of each type, each a unit of its own, gold answers spread over four letters."""
    return [
        Question(
            f"{slug(kind)}-{i}",
            "",
            kind,
            f"{kind} number {i}?",
            ("rain", "snow", "wind", "sun"),
            "ABCD"[i % 4],
            f"{slug(kind)}-{i}",
        )
        for kind in task_types
        for i in range(length)
    ]


def round_request(
    questions: Sequence[Question], candidates: Mapping[str, str], step: int, skills_version: str = "v1"
) -> pb.ValidateSkillsRequest:
    """A round for the types of `candidates` (type to text) over all of their questions, by the `direct` solver."""
    specs = [
        round_pb2.GateSpec(
            task_type=kind,
            target_file=f"{slug(kind)}.md",
            candidate_text=text,
            ladder=[
                round_pb2.LadderUnit(unit_id=q.unit_id, question_ids=[q.question_id])
                for q in questions
                if q.task_type == kind
            ],
        )
        for kind, text in candidates.items()
    ]
    return pb.ValidateSkillsRequest(
        workspace="w",
        run_id="train",
        step=step,
        dataset="d",
        skills_version=skills_version,
        prompts_version="v1",
        specs=specs,
        agent=round_pb2.AgentOptions(solver="direct"),
    )


@contextlib.asynccontextmanager
async def whole_house(root: Path, content: Content) -> AsyncIterator[House]:
    """The house, filled; data and caches live below `root`."""
    store_parts = await build_store(StoreConfig(port=0, metrics_port=0, data=root / "data"))
    async with _simulated_model(content) as url, local_server("store", store_parts) as store:
        address = f"127.0.0.1:{store.port}"
        inference_config = InferenceConfig(
            port=0,
            metrics_port=0,
            store_address=address,
            llm_base_url=url,
            llm_model="sim-dice",
            cache_dir=root / "cache",
            seed_from_salt=True,
        )
        async with local_server("inference", await build_inference(inference_config)) as inference:
            gate_config = GateConfig(
                port=0, metrics_port=0, store_address=address, inference_address=f"127.0.0.1:{inference.port}"
            )
            async with (
                local_channel("gate", await build_gate(gate_config)) as to_gate,
                open_channel(address, ClientCredentials()) as to_store,
            ):
                await _fill(store_client(to_store), content)
                yield House(gate_service_pb2_grpc.GateServiceStub(to_gate), store_client(to_store))


@contextlib.asynccontextmanager
async def _simulated_model(content: Content) -> AsyncIterator[str]:
    server = SimulatorServer(knowledge(content.world, Answers(content.questions)))
    runner = web.AppRunner(server.application(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def _fill(store: StoreClient, content: Content) -> None:
    asked = [
        question_pb2.Question(
            question_id=q.question_id, task_type=q.task_type, text=q.text, options=q.options, answer=q.answer
        )
        for q in content.questions
    ]
    await store.library.ImportQuestions(library_service_pb2.ImportQuestionsRequest(dataset="d", questions=asked))
    prompts = read_folder(bundled_path("prompts"), ["agent", "tools"])
    initial = workspaces.InitialContent(dataset="d", skills=content.skills, prompts=prompts)
    await store.workspaces.CreateWorkspace(workspaces.CreateWorkspaceRequest(name="w", initial=initial))
    units = [
        pool_pb2.PoolUnit(
            unit_id=q.unit_id, task_type=q.task_type, question_ids=[q.question_id], pool=pool_pb2.POOL_VAL
        )
        for q in content.questions
    ]
    pools = pool_pb2.Pools(baseline_run_id="base", dataset="d", units=units)
    await store.workspaces.FreezePools(
        workspaces.FreezePoolsRequest(workspace="w", pools=pools, split_manifest_json="{}")
    )
