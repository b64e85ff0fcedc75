"""Dataclasses to protobuf messages and back, by field name.

A record of `domain/`, such as those of `step_rows.py`, has the fields of its message under the same names, with
these differences: an enum is its value's name without the prefix, in lower case (`POOL_DIAG` is `diag`; unset is the
empty string); a Timestamp is a datetime; a Duration `x_duration` is a float `x_seconds`; a JSON text stays a text.
Fields that the record lacks are left alone, and an optional field that is not set is None.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

M = TypeVar("M", bound=Message)
R = TypeVar("R")


def to_message(record: object, message_type: type[M]) -> M:
    """`record` as a message. Raises ValueError for an unknown enum name, KeyError for a field the message lacks."""
    message = message_type()
    descriptors = _fields(message)
    for field in dataclasses.fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if value is not None:
            _assign(message, descriptors[_wire_name(field.name, descriptors)], value)
    return message


def from_message(message: Message, record_type: type[R]) -> R:
    """`message` as a record."""
    hints = get_type_hints(record_type)
    descriptors = _fields(message)
    values: dict[str, object] = {}
    for field in dataclasses.fields(record_type):  # type: ignore[arg-type]
        descriptor = descriptors[_wire_name(field.name, descriptors)]
        values[field.name] = _read(message, descriptor, hints[field.name])
    return record_type(**values)


def _fields(message: Message) -> Mapping[str, FieldDescriptor]:
    return cast("Mapping[str, FieldDescriptor]", message.DESCRIPTOR.fields_by_name)


def _wire_name(name: str, descriptors: Mapping[str, FieldDescriptor]) -> str:
    if name.endswith("_seconds") and name not in descriptors:
        return f"{name.removesuffix('_seconds')}_duration"
    return name


def _assign(message: Message, descriptor: FieldDescriptor, value: Any) -> None:
    target = getattr(message, descriptor.name)
    if _is_map(descriptor):
        target.update(value)
    elif descriptor.is_repeated:
        target.extend(_encode(descriptor, item) for item in value)
    elif descriptor.message_type is not None:
        target.CopyFrom(_encode(descriptor, value))
    else:
        setattr(message, descriptor.name, _encode(descriptor, value))


def _encode(descriptor: FieldDescriptor, value: Any) -> Any:
    if descriptor.enum_type is not None:
        return _enum_number(descriptor.enum_type, value)
    if descriptor.message_type is None:
        return value
    if isinstance(value, datetime):
        stamp = Timestamp()
        stamp.FromDatetime(value.astimezone(UTC))
        return stamp
    if isinstance(value, float):
        duration = Duration()
        duration.FromTimedelta(timedelta(seconds=value))
        return duration
    return to_message(value, GetMessageClass(descriptor.message_type))


def _read(message: Message, descriptor: FieldDescriptor, hint: Any) -> object:
    value = getattr(message, descriptor.name)
    hint, optional = _without_none(hint)
    if _is_map(descriptor):
        return dict(value)
    if descriptor.is_repeated:
        item_hint = get_args(hint)[0]
        return tuple(_decode(descriptor, item, item_hint) for item in value)
    if optional and descriptor.has_presence and not message.HasField(descriptor.name):
        return None
    return _decode(descriptor, value, hint)


def _decode(descriptor: FieldDescriptor, value: Any, hint: Any) -> object:
    if descriptor.enum_type is not None:
        return _enum_name(descriptor.enum_type, value)
    if isinstance(value, Timestamp):
        return value.ToDatetime(tzinfo=UTC)
    if isinstance(value, Duration):
        return value.ToTimedelta().total_seconds()
    if descriptor.message_type is not None:
        return from_message(value, hint)
    return value


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0], len(kinds) < len(get_args(hint))


def _is_map(descriptor: FieldDescriptor) -> bool:
    return descriptor.message_type is not None and descriptor.message_type.GetOptions().map_entry


def _prefix(enum: EnumDescriptor) -> str:
    return enum.values_by_number[0].name.removesuffix("UNSPECIFIED")


def _enum_number(enum: EnumDescriptor, name: str) -> int:
    value = enum.values_by_name.get(f"{_prefix(enum)}{name.upper()}" if name else enum.values_by_number[0].name)
    if value is None:
        raise ValueError(f"{enum.name} has no value {name!r}")
    return value.number


def _enum_name(enum: EnumDescriptor, number: int) -> str:
    return enum.values_by_number[number].name.removeprefix(_prefix(enum)).lower() if number else ""
