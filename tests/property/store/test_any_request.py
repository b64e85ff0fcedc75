"""Any field of any request may hold anything (QUA-13): a clear status, and nothing outside the data root."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from videotree.store.v1 import (
    library_service_pb2,
    run_service_pb2,
    training_service_pb2,
    version_service_pb2,
    workspace_service_pb2,
)

from tests.builders.store_requests import WORKSPACE, append, make_workspace, prediction
from tests.fakes.store_client import StoreClient, disk_store_parts, serving

_MODULES = (library_service_pb2, workspace_service_pb2, version_service_pb2, run_service_pb2, training_service_pb2)
_ROUNDS = 12
_TEXTS = (
    "",
    "v1",
    "r",
    WORKSPACE,
    "sample",
    "a.md",
    "../../escape",
    "/etc/passwd",
    "a\0b",
    "a\nb",
    "%_%",
    "{",
    '{"a": 1}',
    "[]",
    "x" * 2000,
    "\u202eü✓\u2028",
    "'; DROP TABLE predictions; --",
    "..",
    "CON",
)
_ALLOWED = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.FAILED_PRECONDITION,
}


def _value(field: FieldDescriptor, rng: random.Random) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            text = rng.choice(_TEXTS)
            return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
        case FieldDescriptor.CPPTYPE_BOOL:
            return rng.random() < 0.3
        case FieldDescriptor.CPPTYPE_ENUM:
            return rng.choice([0, 1, 2, 3, 77])
        case FieldDescriptor.CPPTYPE_DOUBLE:
            return rng.choice([0.0, -1.0, 0.5, float("nan"), float("inf"), 1e308])
        case _:
            return rng.choice([0, 1, -1, 7, 2**31 - 1, -(2**31)])


def _fill(message: Message, rng: random.Random, depth: int = 0) -> Message:
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.25:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value_field = field.message_type.fields_by_name["value"]
            for _ in range(rng.randrange(3)):
                getattr(message, field.name)[rng.choice(_TEXTS)] = _value(value_field, rng)
        elif field.message_type is not None:
            if depth < 3:
                target = getattr(message, field.name)
                for part in [target.add() for _ in range(rng.randrange(3))] if field.is_repeated else [target]:
                    part.SetInParent()
                    _fill(part, rng, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).extend(_value(field, rng) for _ in range(rng.randrange(3)))
        else:
            setattr(message, field.name, _value(field, rng))
    if "workspace" in message.DESCRIPTOR.fields_by_name and rng.random() < 0.7:
        message.workspace = WORKSPACE  # type: ignore[attr-defined]  # asked for above
    return message


def _methods(client: StoreClient) -> Iterator[tuple[str, Any, type[Message], bool]]:
    stubs = (client.library, client.workspaces, client.versions, client.runs, client.training)
    for module, stub in zip(_MODULES, stubs, strict=True):
        (service,) = module.DESCRIPTOR.services_by_name.values()
        for method in service.methods:
            yield (
                method.name,
                getattr(stub, method.name),
                getattr(module, method.input_type.name),
                method.server_streaming,
            )


async def _status(call: Any, request: Message, streams: bool) -> tuple[grpc.StatusCode, str]:
    try:
        if isinstance(request, training_service_pb2.HoldWorkspaceRequest):
            held = call(request, timeout=20)
            await held.read()
            held.cancel()  # its stream ends when the caller goes away
        elif streams:
            async for _ in call(request, timeout=20):
                pass
        else:
            await call(request, timeout=20)
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""
    return grpc.StatusCode.OK, ""


async def test_qua_13_any_field_may_hold_anything(tmp_path: Path) -> None:
    data = tmp_path / "outer" / "data"
    data.mkdir(parents=True)
    rng = random.Random(11)
    async with serving(await disk_store_parts(data)) as client:
        await make_workspace(client)
        for _ in range(_ROUNDS):
            for name, call, request_type, streams in _methods(client):
                request = _fill(request_type(), rng)
                code, details = await _status(call, request, streams)
                assert code in _ALLOWED, (name, code, details, request)
                assert "Traceback" not in details
        await append(client, prediction("still", "works"))
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_relative_to(data)]
    assert outside == []
    assert not [path for path in data.rglob("*") if path.name.startswith(".tmp-")]
