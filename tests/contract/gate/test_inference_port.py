"""The gate's `Inference` port, on the scripted fake and over gRPC."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest
from videotree.inference.v1 import agent_pb2

from services.gate.adapters.inference_client import GrpcInference
from services.gate.domain.errors import NeighbourFailed
from services.gate.domain.round_spec import AgentOptions
from services.gate.use_cases.ports import ArmCall, Inference
from services.runtime.testing import local_channel
from tests.fakes.gate_fakes import ScriptedInference
from tests.fakes.gate_neighbours import Away, FakeAgent, agent_parts

CALL = ArmCall("w", "d", ("q1", "q2"), "v1", {"a.md": "new"}, "v2", "r_gate_a_cand", "r_gate_a_cand", AgentOptions(), 2)
STOPS = {"q1": (True, "finished"), "q2": (False, "parse_error"), "q3": (False, "budget_exceeded")}


class Neighbour:
    """What answers, behind either implementation."""

    def __init__(self) -> None:
        self.cancelled = False
        self.hold = asyncio.Event()
        self.hold.set()

    async def answer(self, question_id: str) -> tuple[bool, str]:
        try:
            await self.hold.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return STOPS[question_id]


Opened = Callable[[Neighbour], contextlib.AbstractAsyncContextManager[Inference]]


@contextlib.asynccontextmanager
async def scripted(neighbour: Neighbour) -> AsyncIterator[Inference]:
    async def reply(call: ArmCall) -> list[tuple[bool, str]]:
        return [await neighbour.answer(question_id) for question_id in call.question_ids]

    yield ScriptedInference(reply)


@contextlib.asynccontextmanager
async def over_grpc(neighbour: Neighbour) -> AsyncIterator[Inference]:
    agent = FakeAgent(lambda request, question_id: neighbour.answer(question_id))
    async with local_channel("inference", agent_parts(agent)) as channel:
        yield GrpcInference(channel)


@pytest.fixture(params=[scripted, over_grpc], ids=["memory", "grpc"])
def opened(request: pytest.FixtureRequest) -> Opened:
    return request.param  # type: ignore[no-any-return]


async def test_each_question_has_exactly_one_result(opened: Opened) -> None:
    async with opened(Neighbour()) as inference:
        answers = await inference.answer(replace(CALL, question_ids=("q1", "q2", "q3")))
    found = {one.question_id: (one.correct, one.stop_reason) for one in answers.questions}
    assert found == STOPS
    assert answers.usage.model_calls > 0
    assert answers.usage.tokens > 0


async def test_evo_12_overrides_of_skills_and_of_prompts_go_their_own_ways() -> None:
    agent = FakeAgent(lambda request, question_id: Neighbour().answer(question_id))
    async with local_channel("inference", agent_parts(agent)) as channel:
        await GrpcInference(channel).answer(replace(CALL, prompt_overrides={"agent.system.md": "You answer."}))
    (request,) = agent.requests
    assert dict(request.skills.overrides) == {"a.md": "new"}
    assert dict(request.prompt_overrides) == {"agent.system.md": "You answer."}


async def test_cancelling_the_call_cancels_the_work(opened: Opened) -> None:
    neighbour = Neighbour()
    neighbour.hold.clear()
    async with opened(neighbour) as inference:
        asked = asyncio.ensure_future(inference.answer(CALL))
        await asyncio.sleep(0.1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        async with asyncio.timeout(5):
            while not neighbour.cancelled:
                await asyncio.sleep(0.005)


async def test_the_request_says_all_that_the_call_does() -> None:
    agent = FakeAgent(answer_right)
    async with local_channel("inference", agent_parts(agent)) as channel:
        inference = GrpcInference(channel)
        await inference.answer(replace(CALL, agent=AgentOptions(7, "direct", "manual")))
        await inference.answer(replace(CALL, salt=None, overrides={}))
    first, second = agent.requests
    assert (first.workspace, first.dataset, list(first.question_ids)) == ("w", "d", ["q1", "q2"])
    assert (first.skills.version, dict(first.skills.overrides), first.prompts_version) == ("v1", {"a.md": "new"}, "v2")
    assert (first.run_id, first.salt, first.resume) == ("r_gate_a_cand", "r_gate_a_cand", False)
    assert (first.solver, first.skill_mode) == (agent_pb2.SOLVER_DIRECT, agent_pb2.SKILL_MODE_MANUAL)
    assert (first.limits.max_steps, first.limits.concurrency) == (7, 2)
    assert not second.HasField("salt")
    assert not second.skills.overrides


async def answer_right(request: object, question_id: str) -> tuple[bool, str]:
    return True, "finished"


async def test_a_failed_call_is_a_failed_neighbour_with_its_status() -> None:
    async def away(request: object, question_id: str) -> tuple[bool, str]:
        raise Away("no model")

    async with local_channel("inference", agent_parts(FakeAgent(away))) as channel:
        with pytest.raises(NeighbourFailed, match="inference AnswerQuestions: UNAVAILABLE: no model") as raised:
            await GrpcInference(channel).answer(CALL)
    assert raised.value.status == "UNAVAILABLE"


async def test_an_unknown_stop_reason_is_refused_rather_than_counted() -> None:
    async def odd(request: object, question_id: str) -> tuple[bool, str]:
        return False, "timed_out"

    async with local_channel("inference", agent_parts(FakeAgent(odd))) as channel:
        with pytest.raises(NeighbourFailed, match="unknown stop reason 'timed_out' of 'q1'"):
            await GrpcInference(channel).answer(CALL)


async def test_an_answer_that_is_missing_or_doubled_is_refused() -> None:
    class Forgetful(FakeAgent):
        async def AnswerQuestions(self, request, context):  # type: ignore[no-untyped-def]  # noqa: N802
            request.question_ids[:] = ["q1", "q1"]
            async for response in super().AnswerQuestions(request, context):
                yield response

    async with local_channel("inference", agent_parts(Forgetful(answer_right))) as channel:
        with pytest.raises(NeighbourFailed, match="asked for q1, q2, got q1, q1"):
            await GrpcInference(channel).answer(CALL)
