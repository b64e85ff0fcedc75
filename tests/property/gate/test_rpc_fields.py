"""QUA-13: any value in any request field gives an answer or an error that names a field; nothing unexpected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from videotree.gate.v1 import gate_service_pb2 as pb
from videotree.gate.v1 import gate_service_pb2_grpc

from services.gate.config import GateConfig
from services.gate.main import defaults_of
from services.gate.rpc.servicer import GateServicer
from services.gate.rpc.status_codes import STATUS_RULES
from services.gate.use_cases.validate_skills import ValidateSkills
from services.runtime.serving import ServiceParts
from services.runtime.status import error_info, field_violations
from services.runtime.testing import local_channel
from tests.builders.gate_builders import round_spec, scripted, store_for, type_spec

INTEGERS = st.sampled_from([-(2**31), -1, 0, 1, 2, 3, 7, 60, 2001, 2**31 - 1])
DOUBLES = st.sampled_from(
    [float("nan"), float("inf"), -float("inf"), -1.0, -1e-300, 0.0, 0.02, 0.1, 0.5, 0.7, 1.0, 3.0, 20.0, 1e308]
)
TEXTS = st.sampled_from(
    ["", " ", "w", "v1", "Action", "action.md", "action-0", "action-0-q0", "../x.md", "ü\u2028\x00", "a" * 300]
)
NUMBERS = {
    FieldDescriptor.CPPTYPE_INT32: INTEGERS,
    FieldDescriptor.CPPTYPE_INT64: INTEGERS | st.sampled_from([2**63 - 1, -(2**63), 10**9]),
    FieldDescriptor.CPPTYPE_DOUBLE: DOUBLES,
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    FieldDescriptor.CPPTYPE_STRING: TEXTS,
    FieldDescriptor.CPPTYPE_ENUM: st.sampled_from([0, 1, 2, 3, 99]),
}


def fill(message: Message, draw: Any) -> None:
    """Set each field or leave it, to anything its type can hold."""
    for field in message.DESCRIPTOR.fields:
        if not draw(st.booleans()):
            continue
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            count = draw(st.integers(0, 3)) if field.is_repeated else 1
            target = getattr(message, field.name)
            for _ in range(count):
                child = target.add() if field.is_repeated else target
                child.SetInParent()
                fill(child, draw)
        elif field.is_repeated:
            getattr(message, field.name).extend(draw(st.lists(NUMBERS[field.cpp_type], max_size=3)))
        else:
            setattr(message, field.name, draw(NUMBERS[field.cpp_type]))


@st.composite
def requests(draw: Any) -> list[tuple[str, Message]]:
    made = []
    for method in pb.DESCRIPTOR.services_by_name["GateService"].methods:
        sound = method.name == "ValidateSkills" and draw(st.booleans())
        request: Message = valid_round() if sound else getattr(pb, method.input_type.name)()
        fill(request, draw)
        made.append((method.name, request))
    return made


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


async def answers(many: Sequence[tuple[str, Message]]) -> list[tuple[str, Message, grpc.aio.AioRpcError | None]]:
    async with local_channel("gate", parts()) as channel:
        stub = gate_service_pb2_grpc.GateServiceStub(channel)
        return [(method, request, await answer(stub, method, request)) for method, request in many]


EXPECTED = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_qua_13_no_request_brings_an_unexpected_error(many: list[tuple[str, Message]]) -> None:
    for method, request, error in asyncio.run(answers(many)):
        if error is None:
            continue
        assert error.code() in EXPECTED, (method, request, error.details())
        assert error_info(error) is not None
        if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
            assert field_violations(error), (method, error.details())


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
