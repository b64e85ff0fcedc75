"""Requests whose fields hold anything that their types can hold, made from the descriptors (QUA-13)."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeAlias

import grpc
from google.protobuf.descriptor import FieldDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from bench.bad_readers import Tally
from services.runtime.status import error_info, field_violations

Sound: TypeAlias = Mapping[str, Sequence[Any]]
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
_MOST, _FEW = 0.8, 0.03
_ENDLESS = frozenset({"HoldWorkspace"})  # its stream lasts until the caller goes away


def filled(message: Message, rng: random.Random, sound: Sound, share: float = _MOST) -> Message:
    """The message with this share of its fields set, to anything; `sound` gives values that go deep, by field name."""
    _fill(message, rng, sound, share, 0)
    return message


def _fill(message: Message, rng: random.Random, sound: Sound, share: float, depth: int) -> None:
    for each in message.DESCRIPTOR.fields:
        if rng.random() >= share or depth > _DEEPEST:
            continue
        if each.message_type is not None and each.message_type.GetOptions().map_entry:
            value = each.message_type.fields_by_name["value"]
            for _ in range(rng.randrange(3)):
                getattr(message, each.name)[rng.choice(_TEXTS)] = _value(value, rng, sound)
        elif each.message_type is not None:
            target = getattr(message, each.name)
            for part in [target.add() for _ in range(rng.randrange(3))] if each.is_repeated else [target]:
                part.SetInParent()
                _fill(part, rng, sound, share, depth + 1)
        elif each.is_repeated:
            getattr(message, each.name).extend(_value(each, rng, sound) for _ in range(rng.randrange(3)))
        else:
            setattr(message, each.name, _value(each, rng, sound))


def _value(field: Any, rng: random.Random, sound: Sound) -> Any:  # Any: two classes of descriptors are about
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


@dataclass(slots=True)
class Answers:
    """What came of requests: `by_method` counts those that were answered, so that one sees how deep they went."""

    tally: Tally = field(default_factory=Tally)
    by_method: Counter[str] = field(default_factory=Counter)


async def ask_anything(
    channel: grpc.aio.Channel,
    service: ServiceDescriptor,
    rng: random.Random,
    sound: Sound,
    answers: Answers,
    *,
    effects: Callable[[], Mapping[str, object]] = dict,
    valid: Mapping[str, Callable[[], Message]] | None = None,
) -> None:
    """Each method of the service once: an answer, or a clear status that names the field where one is at fault.

    `effects` returns, by name, what a refused request must leave as it is. Of a method in `valid` every second
    request is a valid one with a few fields changed. Faults are added to the tally.
    """
    standing = effects()
    for method in service.methods:
        request = GetMessageClass(method.input_type)()
        if valid and method.name in valid and rng.random() < 0.5:
            request = filled(valid[method.name](), rng, sound, _FEW)
        else:
            request = filled(request, rng, sound)
        began = time.monotonic()
        error = await _error_of(channel, service, method.name, request)
        answers.tally.tried += 1
        answers.tally.seconds += time.monotonic() - began
        before, standing = standing, effects()
        if error is None:
            answers.tally.accepted += 1
            answers.by_method[method.name] += 1
            continue
        answers.tally.refused += 1
        changed = sorted(key for key in {*before, *standing} if before.get(key) != standing.get(key))
        fault = _fault_of(error) or (f"it was refused and changed {', '.join(changed[:5])}" if changed else "")
        if fault:
            answers.tally.faults.append(f"{method.full_name}: {fault}; {_shown(request)}")


def _fault_of(error: grpc.aio.AioRpcError) -> str:
    code, details = error.code(), error.details() or ""
    if code not in _ALLOWED:
        return f"{code.name}: {details[:500]}"
    if error_info(error) is None or not details or "Traceback" in details:
        return f"{code.name} without a clear text: {details[:500]}"
    if code is grpc.StatusCode.INVALID_ARGUMENT and not field_violations(error):
        return f"INVALID_ARGUMENT that names no field: {details[:500]}"
    return ""


def _shown(request: Message) -> str:
    return " ".join(str(request).split())[:600]


async def _error_of(
    channel: grpc.aio.Channel, service: ServiceDescriptor, name: str, request: Message
) -> grpc.aio.AioRpcError | None:
    method = service.methods_by_name[name]
    make = channel.unary_stream if method.server_streaming else channel.unary_unary
    call: Any = make(
        f"/{service.full_name}/{name}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )(request, timeout=_DEADLINE_SECONDS)
    try:
        if name in _ENDLESS:
            await call.read()
            call.cancel()
        elif method.server_streaming:
            async for _ in call:
                pass
        else:
            await call
    except grpc.aio.AioRpcError as error:
        return error
    return None
