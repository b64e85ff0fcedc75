"""Requests whose fields hold anything that their types can hold, made from the descriptors (QUA-13)."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import grpc
from google.protobuf.descriptor import FieldDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from services.runtime.status import error_info, field_violations

SCALE = 20 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 1
"""How many times more is tried in the profile `deep`."""

TRAVERSALS = ("../../escape", "/etc/passwd", "..", "a/../../b", "..\\..\\escape", "a\0b", ".hidden")
_TEXTS = (
    *TRAVERSALS, "~root", "", " ", "v1", "w", "sample", "q1", "a.md", "action-reasoning.md", "a\nb", "%_%", "{",
    '{"a": 1}', "[]",
    "null", "1e999", "x" * 5000, "\u202eü✓\u2028", "'; DROP TABLE predictions; --", "{{question}}", "</skill>",
    "---\nname: a\ndescription: b\n---\nText.\n",
)  # fmt: skip
_INTEGERS = (0, 1, -1, 2, 7, 2**31 - 1, -(2**31))
_FLOATS = (0.0, -1.0, 0.5, 1.0, float("nan"), float("inf"), -float("inf"), 1e308)
_ALLOWED = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE,
}
_DEADLINE_SECONDS = 60
_DEEPEST = 4


def filled(message: Message, rng: random.Random, sound: Mapping[str, Sequence[Any]]) -> Message:
    """The message with most of its fields set, to anything; `sound` gives values that go deep, by field name."""
    _fill(message, rng, sound, 0)
    return message


def _fill(message: Message, rng: random.Random, sound: Mapping[str, Sequence[Any]], depth: int) -> None:
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.2 or depth > _DEEPEST:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            for _ in range(rng.randrange(3)):
                getattr(message, field.name)[rng.choice(_TEXTS)] = _value(value, rng, sound)
        elif field.message_type is not None:
            target = getattr(message, field.name)
            for part in [target.add() for _ in range(rng.randrange(3))] if field.is_repeated else [target]:
                part.SetInParent()
                _fill(part, rng, sound, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).extend(_value(field, rng, sound) for _ in range(rng.randrange(3)))
        else:
            setattr(message, field.name, _value(field, rng, sound))


def _value(field: FieldDescriptor, rng: random.Random, sound: Mapping[str, Sequence[Any]]) -> Any:
    is_text = field.cpp_type == FieldDescriptor.CPPTYPE_STRING
    known = [value for value in sound.get(field.name, ()) if isinstance(value, str) == is_text]
    if known and rng.random() < 0.6:
        return rng.choice(known)
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            text = rng.choice(_TEXTS)
            return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
        case FieldDescriptor.CPPTYPE_BOOL:
            return rng.random() < 0.5
        case FieldDescriptor.CPPTYPE_ENUM:
            return rng.choice([0, 1, 2, 3, 77])
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return rng.choice(_FLOATS)
        case _:
            return rng.choice(_INTEGERS)


def services_of(*modules: ModuleType) -> Iterator[ServiceDescriptor]:
    """Every service that the generated modules declare."""
    for module in modules:
        yield from module.DESCRIPTOR.services_by_name.values()


async def require_clear_answers(
    channel: grpc.aio.Channel, service: ServiceDescriptor, rng: random.Random, sound: Mapping[str, Sequence[Any]]
) -> Counter[str]:
    """Each method of the service once: an answer, or a clear status that names the field where one is at fault.

    Returns how often each method was answered, so that a test can require that its requests get past the checks.
    """
    answered: Counter[str] = Counter()
    for method in service.methods:
        request = filled(GetMessageClass(method.input_type)(), rng, sound)
        error = await _error_of(channel, service, method.name, request)
        if error is None:
            answered[method.name] += 1
            continue
        code, details = error.code(), error.details() or ""
        assert code in _ALLOWED, (method.full_name, code, details, request)
        assert error_info(error) is not None, (method.full_name, code, details, request)
        assert "Traceback" not in details
        if code is grpc.StatusCode.INVALID_ARGUMENT:
            assert field_violations(error), (method.full_name, details, request)
    return answered


async def _error_of(
    channel: grpc.aio.Channel, service: ServiceDescriptor, name: str, request: Message
) -> grpc.aio.AioRpcError | None:
    method = service.methods_by_name[name]
    make = channel.unary_stream if method.server_streaming else channel.unary_unary
    call = make(
        f"/{service.full_name}/{name}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )(request, timeout=_DEADLINE_SECONDS)
    try:
        if method.server_streaming:
            async for _ in call:
                pass
        else:
            await call
    except grpc.aio.AioRpcError as error:
        return error
    return None
