"""QUA-13: any value in any request field gives an answer or an error that names a field; nothing unexpected."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from videotree.gate.v1 import gate_service_pb2 as pb
from videotree.gate.v1 import gate_service_pb2_grpc

from bench.any_request import Answers, Sound, ask_anything, services_of
from bench.bad_requests import GATE_RULES
from services.gate.config import GateConfig
from services.gate.main import defaults_of
from services.gate.rpc.servicer import GateServicer
from services.gate.rpc.status_codes import STATUS_RULES
from services.gate.use_cases.validate_skills import ValidateSkills
from services.runtime.serving import ServiceParts
from services.runtime.status import field_violations
from services.runtime.testing import local_channel
from tests.builders.depth import SCALE
from tests.builders.gate_builders import round_spec, scripted, store_for, type_spec

SOUND: Sound = {
    "workspace": ["w"], "run_id": ["r"], "dataset": ["d"], "skills_version": ["v1"], "prompts_version": ["v1"],
    "task_type": ["Action"], "target_file": ["action.md", "../x.md"], "unit_id": ["action-0", "action-1"],
    "question_ids": ["action-0-q0"], "solver": ["tree", "direct"], "skill_mode": ["routed"],
    "w": [0, 3, 8], "l": [0, 1], "n_used": [8], "n_remaining": [0, 4], "count": [1, 60, 2001], "p1": [0.7, 3.0],
}  # fmt: skip


def valid_round() -> pb.ValidateSkillsRequest:
    spec = pb.ValidateSkillsRequest(workspace="w", run_id="r", dataset="d", skills_version="v1", prompts_version="v1")
    one = spec.specs.add(task_type="Action", target_file="action.md", candidate_text="new")
    for number in range(4):
        one.ladder.add(unit_id=f"action-{number}", question_ids=[f"action-{number}-q0"])
    return spec


def parts() -> ServiceParts:
    types = [type_spec("Action", [1] * 4)]
    round_spec(types)
    servicer = GateServicer(ValidateSkills(scripted({}), store_for(types)), defaults_of(GateConfig()))

    async def close() -> None:
        return None

    def register(server: grpc.aio.Server) -> None:
        gate_service_pb2_grpc.add_GateServiceServicer_to_server(servicer, server)

    return ServiceParts(register, ("videotree.gate.v1.GateService",), STATUS_RULES, close)


async def answer(stub: gate_service_pb2_grpc.GateServiceStub, method: str, request: Any) -> grpc.aio.AioRpcError | None:
    call = getattr(stub, method)(request)
    try:
        if isinstance(call, AsyncIterator) or hasattr(call, "__aiter__"):
            _ = [message async for message in call]
        else:
            await call
    except grpc.aio.AioRpcError as error:
        return error
    return None


VALID = {**GATE_RULES, "ValidateSkills": valid_round}


async def test_qua_13_no_request_brings_an_unexpected_error() -> None:
    answers, rng = Answers(), random.Random(3)
    async with local_channel("gate", parts()) as channel:
        for _ in range(60 * SCALE):
            for service in services_of(pb):
                await ask_anything(channel, service, rng, SOUND, answers, valid=VALID)
    assert answers.tally.faults == []
    assert set(VALID) == set(answers.by_method)


FAULTS: list[tuple[str, Any, str]] = [
    ("workspace", lambda r: r.ClearField("workspace"), "workspace"),
    ("run_id", lambda r: r.ClearField("run_id"), "run_id"),
    ("epoch", lambda r: setattr(r, "epoch", -1), "epoch"),
    ("no specs", lambda r: r.ClearField("specs"), "specs"),
    ("empty ladder", lambda r: r.specs[0].ClearField("ladder"), "specs[0].ladder"),
    ("doubled unit", lambda r: r.specs[0].ladder.add().CopyFrom(r.specs[0].ladder[0]), "specs[0].ladder"),
    ("no questions", lambda r: r.specs[0].ladder[1].ClearField("question_ids"), "specs[0].ladder[1].question_ids"),
    ("traversal", lambda r: setattr(r.specs[0], "target_file", "../action.md"), "specs[0].target_file"),
    ("NaN", lambda r: setattr(r.specs[0].parameters, "e_confirm", float("nan")), "specs[0].parameters.e_confirm"),
    ("p1", lambda r: setattr(r.specs[0].parameters, "p1", 0.5), "specs[0].parameters.p1"),
    ("mixture", lambda r: setattr(r.specs[0].parameters, "mixture", 9), "specs[0].parameters.mixture"),
    ("width", lambda r: setattr(r.options, "concurrency", -1), "options.concurrency"),
    ("speculation", lambda r: setattr(r.options, "max_speculation", -1), "options.max_speculation"),
    ("guard", lambda r: setattr(r.options, "guard_error_share", 0.0), "options.guard_error_share"),
    ("guard size", lambda r: setattr(r.options, "guard_min_questions", 0), "options.guard_min_questions"),
    ("solver", lambda r: setattr(r.agent, "solver", "magic"), "agent.solver"),
    ("mode", lambda r: setattr(r.agent, "skill_mode", "magic"), "agent.skill_mode"),
    ("steps", lambda r: setattr(r.agent, "max_steps", -1), "agent.max_steps"),
]


@pytest.mark.parametrize(("change", "field"), [(c, f) for _, c, f in FAULTS], ids=[name for name, *_ in FAULTS])
async def test_gat_11_a_faulty_round_names_the_field(change: Any, field: str) -> None:
    request = valid_round()
    change(request)
    async with local_channel("gate", parts()) as channel:
        error = await answer(gate_service_pb2_grpc.GateServiceStub(channel), "ValidateSkills", request)
    assert error is not None
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert list(field_violations(error)) == [field]


async def test_the_round_that_the_faults_are_cut_from_is_sound() -> None:
    async with local_channel("gate", parts()) as channel:
        assert await answer(gate_service_pb2_grpc.GateServiceStub(channel), "ValidateSkills", valid_round()) is None
