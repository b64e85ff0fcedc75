"""The gate as a running service, between a store and an inference service over real gRPC."""

import asyncio
import contextlib
import hashlib
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import grpc
import pytest
from videotree.gate.v1 import gate_service_pb2 as pb
from videotree.gate.v1 import gate_service_pb2_grpc, round_pb2, verdict_pb2

from services.gate.config import GateConfig
from services.gate.main import build
from services.runtime.status import error_info, field_violations
from services.runtime.testing import local_channel, local_server
from services.skills import slug
from tests.fakes.gate_neighbours import Answering, Away, FakeAgent, FakeStore, agent_parts, store_parts


@dataclass
class House:
    gate: gate_service_pb2_grpc.GateServiceStub
    agent: FakeAgent
    store: FakeStore


def ladder_of(task_type: str, length: int) -> list[round_pb2.LadderUnit]:
    return [
        round_pb2.LadderUnit(unit_id=f"{slug(task_type)}-{i}", question_ids=[f"{slug(task_type)}-{i}-q"])
        for i in range(length)
    ]


def request_for(types: Sequence[str], length: int, **options: object) -> pb.ValidateSkillsRequest:
    specs = [
        round_pb2.GateSpec(
            task_type=one, target_file=f"{slug(one)}.md", candidate_text=f"new {one}", ladder=ladder_of(one, length)
        )
        for one in types
    ]
    return pb.ValidateSkillsRequest(
        workspace="w",
        run_id="train",
        dataset="d",
        skills_version="v1",
        prompts_version="v1",
        specs=specs,
        options=round_pb2.RoundOptions(**options),  # type: ignore[arg-type]
    )


@contextlib.asynccontextmanager
async def house(request: pb.ValidateSkillsRequest, answering: Answering) -> AsyncIterator[House]:
    units = {unit.unit_id: (spec.task_type, tuple(unit.question_ids)) for spec in request.specs for unit in spec.ladder}
    agent, store = FakeAgent(answering), FakeStore(units, {"default-strategy.md": "look closely"})
    async with (
        local_server("inference", agent_parts(agent)) as inference_server,
        local_server("store", store_parts(store)) as store_server,
    ):
        config = GateConfig(
            port=0,
            metrics_port=0,
            store_address=f"127.0.0.1:{store_server.port}",
            inference_address=f"127.0.0.1:{inference_server.port}",
        )
        async with local_channel("gate", await build(config), config) as channel:
            yield House(gate_service_pb2_grpc.GateServiceStub(channel), agent, store)


TYPES = [f"Type {letter}" for letter in "ABCDEFGH"]


def chance(question_id: str, arm: str) -> float:
    return hashlib.sha256(f"{question_id}/{arm}".encode()).digest()[0] / 256


async def latency_tells(request: object, question_id: str) -> tuple[bool, str]:
    arm = request.run_id.rsplit("_", 1)[1]  # type: ignore[attr-defined]
    good = arm == "cand" and question_id[5] in "abcd"
    correct = chance(question_id, arm) < (0.9 if good else 0.5)
    await asyncio.sleep((0.02 if correct else 0.06) * random.uniform(0.5, 1.5))
    return correct, "finished"


async def test_a_round_of_eight_types_interleaves_launches_and_counts_in_ladder_order() -> None:
    request = request_for(TYPES, 60, concurrency=32)
    async with house(request, latency_tells) as one:
        messages = [message async for message in one.gate.ValidateSkills(request)]
        again = [message async for message in one.gate.ValidateSkills(request)]
        first = {(question_id, r.run_id[-4:]) for r in one.agent.requests[:32] for question_id in r.question_ids}
        assert first == {(f"{slug(t)}-{rank}-q", arm) for t in TYPES for rank in (0, 1) for arm in ("base", "cand")}
        assert one.agent.peak == 32
        cached = set(one.store.cached)
    *events, last = messages
    assert [event.WhichOneof("event") for event in events].count("verdict_frozen") == 8
    outcome = last.outcome
    assert [one.task_type for one in outcome.outcomes] == TYPES
    for result in outcome.outcomes:
        check_counts(result, [e.pair_consumed for e in events if e.HasField("pair_consumed")])
        assert (result.peak_in_flight, result.n_planned) == (32, 60)
        assert {unit.unit_id for unit in result.observed if unit.base} <= cached
    accepted = {
        one.task_type for one in outcome.outcomes if "ACCEPT" in verdict_pb2.Decision.Name(one.verdict.decision)
    }
    assert {"Type A", "Type B", "Type C", "Type D"} <= accepted
    for first, second in zip(outcome.outcomes, again[-1].outcome.outcomes, strict=True):
        assert first.verdict == second.verdict
        assert first.evidence == second.evidence
        assert second.cache_hits > 0


def check_counts(result: round_pb2.GateOutcome, pairs: list[pb.PairConsumed]) -> None:
    ranks = [pair.row.ladder_rank for pair in pairs if pair.task_type == result.task_type]
    assert ranks == [row.ladder_rank for row in result.evidence] == list(range(result.n_used))
    wins = losses = 0
    for row in result.evidence:
        question_id = f"{row.unit_id}-q"
        good = question_id[5] in "abcd"
        assert row.base_correct == (chance(question_id, "base") < 0.5)
        assert row.cand_correct == (chance(question_id, "cand") < (0.9 if good else 0.5))
        wins += row.cand_correct and not row.base_correct
        losses += row.base_correct and not row.cand_correct
        assert (row.w, row.l) == (wins, losses)
    assert (result.verdict.w, result.verdict.l, result.verdict.n_used) == (wins, losses, result.n_used)
    assert result.n_used <= result.launched <= result.n_planned
    assert result.model_calls == 3 * result.questions_run
    assert 0 < result.detectable_gain < 0.4


async def test_a_client_that_goes_away_cancels_the_round() -> None:
    async def forever(request: object, question_id: str) -> tuple[bool, str]:
        await asyncio.sleep(600)
        return True, "finished"

    request = request_for(["Type A"], 20)
    async with house(request, forever) as one:
        call = one.gate.ValidateSkills(request)
        while one.agent.open < 32:
            await asyncio.sleep(0.005)
        call.cancel()
        async with asyncio.timeout(5):
            while one.agent.open:
                await asyncio.sleep(0.005)


async def test_an_arm_that_fails_names_type_unit_and_arm() -> None:
    async def away(request: object, question_id: str) -> tuple[bool, str]:
        if question_id == "type-a-3-q":
            raise Away("the model is away")
        await asyncio.sleep(600)
        return True, "finished"

    request = request_for(["Type A"], 20)
    async with house(request, away) as one:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            _ = [message async for message in one.gate.ValidateSkills(request)]
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
        info = error_info(raised.value)
        assert info is not None
        assert (info.reason, info.domain) == ("ARM_FAILED", "videotree.gate")
        assert (info.metadata["task_type"], info.metadata["unit_id"]) == ("Type A", "type-a-3")
        async with asyncio.timeout(5):
            while one.agent.open:
                await asyncio.sleep(0.005)


async def test_the_guard_and_nothing_but_faults_have_their_statuses() -> None:
    async def broken(request: object, question_id: str) -> tuple[bool, str]:
        return False, "error"

    for length, code in ((20, grpc.StatusCode.ABORTED), (4, grpc.StatusCode.FAILED_PRECONDITION)):
        request = request_for(["Type A"], length)
        async with house(request, broken) as one:
            with pytest.raises(grpc.aio.AioRpcError, match="check the inference infrastructure") as raised:
                _ = [message async for message in one.gate.ValidateSkills(request)]
            assert raised.value.code() is code
            assert not one.store.cached


async def test_gat_10_overlapping_targets_name_file_and_types() -> None:
    request = request_for(["Type A", "Type B"], 4)
    request.specs[1].target_file = request.specs[0].target_file
    async with house(request, latency_tells) as one:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            _ = [message async for message in one.gate.ValidateSkills(request)]
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert list(field_violations(raised.value)) == ["specs[1].target_file"]
    info = error_info(raised.value)
    assert info is not None
    assert dict(info.metadata) == {"file": "type-a.md", "task_types": "Type A, Type B"}


async def test_gat_11_the_pure_rpcs_answer() -> None:
    request = request_for(["Type A"], 1)
    async with house(request, latency_tells) as one:
        decided = await one.gate.DecideVerdict(pb.DecideVerdictRequest(w=8, l=0, n_used=8, n_remaining=4))
        assert decided.verdict.decision == verdict_pb2.DECISION_ACCEPT_CONFIRMED
        assert decided.verdict.e_value == pytest.approx(28.4444, abs=1e-3)
        assert decided.verdict.parameters.e_confirm == 20

        rungs = [pb.LadderCandidate(unit=unit, estimate=i / 9) for i, unit in enumerate(ladder_of("Type A", 10))]
        built = await one.gate.BuildLadder(
            pb.BuildLadderRequest(
                workspace="w", task_type="Type A", candidates=rungs, excluded_unit_ids=["type-a-4"], gate_n_max=5
            )
        )
        assert [len(built.rungs), built.excluded_count, built.cut_count] == [5, 1, 4]
        assert [rung.bin for rung in built.rungs] == sorted(rung.bin for rung in built.rungs)

        cells = [pb.FlipRates(win=0.1, loss=0.1), pb.FlipRates(win=0.3, loss=0.05)]
        simulated = await one.gate.SimulateGate(pb.SimulateGateRequest(cells=cells, seed=1))
        assert simulated.cells[0].confirmed_share < 0.01 < 0.7 < simulated.cells[1].confirmed_share
        assert 0.2 < simulated.detectable_gain < 0.4

        pairs = [pb.ProbationPair(unit_id=str(i), predecessor_correct=True) for i in range(10)]
        review = await one.gate.ReviewProbation(pb.ReviewProbationRequest(pairs=pairs))
        assert (review.decision, review.n_used) == (pb.PROBATION_DECISION_ROLL_BACK, 7)
