"""The four services and the simulated model in this process, on real sockets with their own interceptors."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import grpc
from aiohttp import web
from videotree.store.v1 import library_service_pb2, library_service_pb2_grpc, pool_pb2, question_pb2
from videotree.store.v1 import workspace_service_pb2 as workspaces
from videotree.store.v1 import workspace_service_pb2_grpc as workspace_stubs

from services.evolver.config import EvolverConfig
from services.evolver.main import build as build_evolver
from services.gate.config import GateConfig
from services.gate.main import build as build_gate
from services.inference.config import InferenceConfig
from services.inference.main import build as build_inference
from services.questions import Question, parse_question_lines
from services.runtime.bundled import bundled_path
from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.config import ServingConfig
from services.runtime.serving import ServiceParts
from services.runtime.testing import local_channel, local_server
from services.simulator.adapters.world_file import load_knowledge
from services.simulator.http_edge.server import SimulatorServer
from services.store.config import StoreConfig
from services.store.main import build as build_store
from services.templates import read_folder

WORKSPACE, DATASET = "trial", "sample"
_QUESTIONS = 40


@contextlib.asynccontextmanager
async def store_alone(root: Path) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to a store with a workspace of the bundled sample that nobody else writes to."""
    config = StoreConfig(port=0, metrics_port=0, data=root / "data")
    async with local_channel("store", await build_store(config), config) as channel:
        await _fill(channel)
        yield channel


@contextlib.asynccontextmanager
async def all_services(root: Path) -> AsyncIterator[Mapping[str, grpc.aio.Channel]]:
    """A channel to each service by name, the store with a workspace of the bundled sample; data lies below `root`."""
    async with contextlib.AsyncExitStack() as stack:
        url = await stack.enter_async_context(_simulated_model())
        store = StoreConfig(port=0, metrics_port=0, data=root / "data")
        addresses: dict[str, str] = {}

        async def serve(name: str, parts: ServiceParts, config: ServingConfig) -> None:
            running = await stack.enter_async_context(local_server(name, parts, config))
            addresses[name] = f"127.0.0.1:{running.port}"

        await serve("store", await build_store(store), store)
        inference = InferenceConfig(
            port=0, metrics_port=0, store_address=addresses["store"], llm_base_url=url, llm_model="sim-agent",
            judge_llm_model="sim-judge", evolve_llm_model="sim-evolve", cache_dir=root / "cache", seed_from_salt=True,
            retry_base_seconds=0.0, patience_seconds=0.0, cooldown_seconds=0.01,
        )  # fmt: skip
        await serve("inference", await build_inference(inference), inference)
        neighbours: Any = {"store_address": addresses["store"], "inference_address": addresses["inference"]}
        gate = GateConfig(port=0, metrics_port=0, **neighbours)
        await serve("gate", await build_gate(gate), gate)
        evolver = EvolverConfig(port=0, metrics_port=0, **neighbours, model_retry_seconds=0.0, store_retry_seconds=0.0)
        await serve("evolver", await build_evolver(evolver), evolver)
        channels = {
            name: await stack.enter_async_context(open_channel(address, ClientCredentials()))
            for name, address in addresses.items()
        }
        await _fill(channels["store"])
        yield channels


@contextlib.asynccontextmanager
async def _simulated_model() -> AsyncIterator[str]:
    knowledge = load_knowledge(bundled_path("examples") / "sample" / "world.toml")
    runner = web.AppRunner(SimulatorServer(knowledge).application(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def sample_questions() -> tuple[Question, ...]:
    """The questions that the store holds."""
    content = (bundled_path("examples") / "sample" / "questions.jsonl").read_bytes()
    return parse_question_lines(content).questions[:_QUESTIONS]


async def _fill(channel: grpc.aio.Channel) -> None:
    sample, library = bundled_path("examples") / "sample", library_service_pb2_grpc.LibraryServiceStub(channel)
    questions = sample_questions()
    for video_id in sorted({question.video_id for question in questions}):
        tree = (sample / "trees" / video_id / "tree.json").read_bytes()
        await library.PutVideo(library_service_pb2.PutVideoRequest(video_id=video_id, tree_json=tree))
    asked = [
        question_pb2.Question(
            question_id=each.question_id, video_id=each.video_id, task_type=each.task_type, text=each.text,
            options=each.options, answer=each.answer, unit_id=each.unit_id,
        )
        for each in questions
    ]  # fmt: skip
    await library.ImportQuestions(library_service_pb2.ImportQuestionsRequest(dataset=DATASET, questions=asked))
    skills = {path.name: path.read_text(encoding="utf-8") for path in sorted((sample / "skills").glob("*.md"))}
    prompts = read_folder(bundled_path("prompts"), ["agent", "tools"])
    initial = workspaces.InitialContent(dataset=DATASET, skills=skills, prompts=prompts)
    made = workspace_stubs.WorkspaceServiceStub(channel)
    await made.CreateWorkspace(workspaces.CreateWorkspaceRequest(name=WORKSPACE, initial=initial))
    units = [
        pool_pb2.PoolUnit(
            unit_id=each.unit_id, task_type=each.task_type, video_id=each.video_id, question_ids=[each.question_id],
            pool=pool_pb2.POOL_VAL,
        )
        for each in questions
    ]  # fmt: skip
    pools = pool_pb2.Pools(baseline_run_id="base", dataset=DATASET, units=units)
    await made.FreezePools(workspaces.FreezePoolsRequest(workspace=WORKSPACE, pools=pools, split_manifest_json="{}"))


class StoreWatch:
    """Sees whether anything on a data root has changed: commits to its databases, and every other file."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._open: dict[tuple[Path, int], sqlite3.Connection] = {}

    def __call__(self) -> Mapping[str, object]:
        """A value for each file and database that is another one after a change."""
        seen: dict[str, object] = {}
        for path in sorted(self._data.rglob("*")):
            name = str(path.relative_to(self._data))
            if path.suffix == ".db":
                seen[name] = self._version(path)
            elif path.is_file() and ".db" not in path.suffix:
                status = path.stat()
                seen[name] = (status.st_size, status.st_mtime_ns)
        return seen

    def close(self) -> None:
        """Closes the databases that were looked at."""
        for connection in self._open.values():
            connection.close()

    def _version(self, path: Path) -> tuple[int, int]:
        inode = path.stat().st_ino
        if (path, inode) not in self._open:
            self._open[path, inode] = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        (version,) = self._open[path, inode].execute("PRAGMA data_version").fetchone()
        return inode, version
