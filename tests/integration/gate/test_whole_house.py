"""A round through real store, real inference and the simulated model with stated probabilities (`sim-dice`)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web
from videotree.gate.v1 import gate_service_pb2 as pb
from videotree.gate.v1 import gate_service_pb2_grpc, round_pb2, verdict_pb2
from videotree.store.v1 import library_service_pb2, pool_pb2, question_pb2, run_service_pb2
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
from tests.fakes.in_memory_answering import skill
from tests.fakes.store_client import StoreClient, store_client

BETTER, SAME = "Cause Why", "Scene Order"
LENGTH = 40
WORLD = f"""
seed = 5
[dice]
default = 0.4
[[dice.effects]]
phrase = "look twice"
task_type = "{BETTER}"
shift = 0.5
"""
SKILLS = {"default-strategy.md": skill("default-strategy", "default", "Look.")}
CANDIDATE = {BETTER: "Look, then look twice.", SAME: "Look."}


def questions() -> list[Question]:
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
        for kind in (BETTER, SAME)
        for i in range(LENGTH)
    ]


@dataclass
class House:
    gate: gate_service_pb2_grpc.GateServiceStub
    store: StoreClient


@contextlib.asynccontextmanager
async def simulated_model() -> AsyncIterator[str]:
    runner = web.AppRunner(SimulatorServer(knowledge(WORLD, Answers(questions()))).application(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def house(root: Path) -> AsyncIterator[House]:
    store_parts = await build_store(StoreConfig(port=0, metrics_port=0, data=root / "data"))
    async with simulated_model() as url, local_server("store", store_parts) as store:
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
                await fill(store_client(to_store))
                yield House(gate_service_pb2_grpc.GateServiceStub(to_gate), store_client(to_store))


async def fill(store: StoreClient) -> None:
    asked = [
        question_pb2.Question(
            question_id=q.question_id, task_type=q.task_type, text=q.text, options=q.options, answer=q.answer
        )
        for q in questions()
    ]
    await store.library.ImportQuestions(library_service_pb2.ImportQuestionsRequest(dataset="d", questions=asked))
    prompts = read_folder(bundled_path("prompts"), ["agent", "tools"])
    initial = workspaces.InitialContent(dataset="d", skills=SKILLS, prompts=prompts)
    await store.workspaces.CreateWorkspace(workspaces.CreateWorkspaceRequest(name="w", initial=initial))
    units = [
        pool_pb2.PoolUnit(
            unit_id=q.unit_id, task_type=q.task_type, question_ids=[q.question_id], pool=pool_pb2.POOL_VAL
        )
        for q in questions()
    ]
    pools = pool_pb2.Pools(baseline_run_id="base", dataset="d", units=units)
    await store.workspaces.FreezePools(
        workspaces.FreezePoolsRequest(workspace="w", pools=pools, split_manifest_json="{}")
    )


def request(step: int) -> pb.ValidateSkillsRequest:
    specs = [
        round_pb2.GateSpec(
            task_type=kind,
            target_file=f"{slug(kind)}.md",
            candidate_text=skill(slug(kind), kind, CANDIDATE[kind]),
            ladder=[
                round_pb2.LadderUnit(unit_id=q.unit_id, question_ids=[q.question_id])
                for q in questions()
                if q.task_type == kind
            ],
        )
        for kind in (BETTER, SAME)
    ]
    return pb.ValidateSkillsRequest(
        workspace="w",
        run_id="train",
        step=step,
        dataset="d",
        skills_version="v1",
        prompts_version="v1",
        specs=specs,
        agent=round_pb2.AgentOptions(solver="direct"),
    )


async def outcomes(up: House, step: int) -> dict[str, round_pb2.GateOutcome]:
    messages = [message async for message in up.gate.ValidateSkills(request(step))]
    return {one.task_type: one for one in messages[-1].outcome.outcomes}


async def stored(up: House, run_id: str) -> dict[str, bool]:
    listed = await up.store.runs.ListPredictions(run_service_pb2.ListPredictionsRequest(workspace="w", run_id=run_id))
    return {row.question_id: row.correct for row in listed.predictions}


@pytest.mark.slow
async def test_a_round_through_the_whole_house_accepts_what_helps_and_not_what_does_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as up:
        first = await outcomes(up, step=0)
        second = await outcomes(up, step=1)
        base = await stored(up, "train_e0_s0_gate_cause-why_base")
        cand = await stored(up, "train_e0_s0_gate_cause-why_cand")
    better, same = first[BETTER], first[SAME]
    assert verdict_pb2.Decision.Name(better.verdict.decision) == "DECISION_ACCEPT_CONFIRMED"
    assert "ACCEPT" not in verdict_pb2.Decision.Name(same.verdict.decision)
    assert better.cand_accuracy > better.base_accuracy
    for row in better.evidence:
        assert (base[row.unit_id], cand[row.unit_id]) == (row.base_correct, row.cand_correct)
    assert better.model_calls == better.questions_run > 0
    assert (better.cache_hits, better.base_infra_rate, better.cand_infra_rate) == (0, 0.0, 0.0)

    again = second[BETTER]
    assert again.cache_hits == len(base), "every base of the first step is kept, counted or not"
    repeated = {row.unit_id: row.base_correct for row in again.evidence}
    assert {unit: correct for unit, correct in base.items() if unit in repeated}.items() <= repeated.items()
    draws = [{unit.unit_id: unit.cand for unit in one[SAME].observed if unit.cand} for one in (first, second)]
    shared = draws[0].keys() & draws[1].keys()
    assert any(draws[0][unit] != draws[1][unit] for unit in shared), "a candidate is drawn afresh in each step"
