"""What stands around the gate in its benchmark: inference and store in memory, and an agent in its own process."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import random
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import uvloop
from videotree.inference.v1 import agent_pb2, agent_service_pb2, agent_service_pb2_grpc

from services.gate.domain.round_events import Usage
from services.gate.domain.round_spec import AgentOptions, RoundOptions, RoundSpec, TypeSpec
from services.gate.domain.unit_result import QuestionResult
from services.gate.domain.verdict import GateParameters
from services.gate.use_cases.ports import ArmAnswers, ArmCall, BaselineKey, BaselineRow, PooledUnit
from services.questions import Unit
from services.runtime.serving import ServiceParts
from services.runtime.testing import local_server

WINS = 6
"""Wins at the head of each ladder, then ties: E = 9.1 neither confirms nor is ever futile, so all units run."""


def round_of(types: int, length: int, options: RoundOptions, parameters: GateParameters | None = None) -> RoundSpec:
    """A round of `types` types of `length` one-question units."""
    specs = []
    for number in range(types):
        name = f"type-{number}"
        ladder = tuple(Unit(f"{name}-{i}", name, (f"{name}-{i}",)) for i in range(length))
        specs.append(TypeSpec(name, f"{name}.md", "candidate", ladder, parameters or GateParameters()))
    return RoundSpec("w", "bench", 0, 0, "d", "v1", "v1", tuple(specs), options, AgentOptions())


def is_right(run_id: str, question_id: str) -> bool:
    """Six wins, then ties."""
    return run_id.endswith("_cand") or int(question_id.rsplit("-", 1)[1]) >= WINS


class Latencies:
    """Log-normal latencies in seconds, one for each arm of each unit, the same whenever asked."""

    def __init__(self, seed: int, median_seconds: float, sigma: float) -> None:
        self._seed = seed
        self._median = median_seconds
        self._sigma = sigma

    def of(self, call: ArmCall) -> float:
        """The latency of that call."""
        rng = random.Random(f"{self._seed}/{call.run_id}/{call.question_ids[0]}")
        return self._median * rng.lognormvariate(0, self._sigma)


class MemoryInference:
    """The `Inference` port without a wire; without latencies it answers in the next turn of the loop.

    `seconds`: how long each call really took (a busy machine wakes late), in the order of launch.
    """

    def __init__(self, latencies: Latencies | None = None) -> None:
        self._latencies = latencies
        self._calls: dict[tuple[str, str], ArmCall] = {}
        self.seconds: list[float] = []

    async def answer(self, call: ArmCall) -> ArmAnswers:
        """See `Inference.answer`."""
        if self._latencies is None:
            await asyncio.sleep(0)
        else:
            await self._wait(call, self._latencies.of(call))
        question_id = call.question_ids[0]
        result = QuestionResult(question_id, is_right(call.run_id, question_id), "finished")
        return ArmAnswers((result,), Usage(1, 0, 100))

    async def _wait(self, call: ArmCall, latency: float) -> None:
        self._calls[call.run_id, call.question_ids[0]] = call
        index, started = len(self.seconds), time.perf_counter()
        self.seconds.append(latency)
        await asyncio.sleep(latency)
        self.seconds[index] = time.perf_counter() - started

    def pairs(self) -> list[list[tuple[ArmCall, ArmCall]]]:
        """The calls seen, by type and in ladder order, base and candidate together."""
        runs: dict[str, list[tuple[ArmCall, ArmCall]]] = {}
        for (run_id, question_id), call in self._calls.items():
            if run_id.endswith("_base"):
                cand = self._calls[run_id.removesuffix("_base") + "_cand", question_id]
                runs.setdefault(run_id, []).append((call, cand))
        return list(runs.values())


class MemoryStore:
    """The `Store` port for one round, with a cold cache."""

    def __init__(self, spec: RoundSpec) -> None:
        self._units = {
            unit.unit_id: PooledUnit(one.task_type, unit.question_ids, False)
            for one in spec.types
            for unit in one.ladder
        }

    async def skill_files(self, workspace: str, version: str) -> Mapping[str, str]:
        """See `Store.skill_files`."""
        return {"default-strategy.md": "base"}

    async def prompt_files(self, workspace: str, version: str) -> Mapping[str, str]:
        """See `Store.prompt_files`."""
        return {}

    async def pooled_units(self, workspace: str) -> Mapping[str, PooledUnit]:
        """See `Store.pooled_units`."""
        return self._units

    async def cached_results(self, key: BaselineKey, unit_ids: Collection[str]) -> Mapping[str, bool]:
        """See `Store.cached_results`."""
        return {}

    async def cache_results(self, rows: Sequence[BaselineRow]) -> None:
        """See `Store.cache_results`."""
        await asyncio.sleep(0)


class _Agent(agent_service_pb2_grpc.AgentServiceServicer):
    async def AnswerQuestions(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - the contract's name
        for question_id in request.question_ids:
            answer = agent_pb2.Answer(
                question_id=question_id, correct=is_right(request.run_id, question_id), stop_reason="finished"
            )
            yield agent_service_pb2.AnswerQuestionsResponse(answer=answer)


async def _serve(pipe: Connection) -> None:
    async def nothing() -> None:
        return None

    def register(server: Any) -> None:
        agent_service_pb2_grpc.add_AgentServiceServicer_to_server(_Agent(), server)

    parts = ServiceParts(register, ("videotree.inference.v1.AgentService",), {}, nothing)
    async with local_server("inference", parts) as running:
        pipe.send(running.port)
        await asyncio.to_thread(pipe.recv)


def _agent_main(pipe: Connection) -> None:
    uvloop.run(_serve(pipe))


@contextlib.contextmanager
def agent_process() -> Iterator[str]:
    """The address of an agent service in a process of its own, which ends with the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_agent_main, args=(theirs,))
    process.start()
    try:
        yield f"127.0.0.1:{ours.recv()}"
    finally:
        ours.send(None)
        process.join()
