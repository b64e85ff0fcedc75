"""Messages to rows and back, field by field: a column has the name of the field it holds.

Enums become their value's name in lower case without the prefix, times ISO 8601 UTC text, durations seconds, repeated
texts lists, maps objects; an optional field that is absent becomes None.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from services.store.domain.errors import InvalidRequest

M = TypeVar("M", bound=Message)
_Reader = Callable[[Any], object]  # Any: the field of whichever message the reader was made for
_Readers = tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]], tuple[tuple[str, _Reader], ...]]
_Writer = Callable[[Any, Any], None]
_MICROSECONDS = 1_000_000
_NANOSECONDS = 1_000_000_000
_MAX_DURATION_SECONDS = 315_576_000_000 - 1  # what a Duration may hold: about 10,000 years
_TIMESTAMP = Timestamp.DESCRIPTOR.full_name
_DURATION = Duration.DESCRIPTOR.full_name


def to_row(message: Message, **more: object) -> dict[str, Any]:
    """Return a message's fields as a row, together with `more`; an enum that is not set becomes an empty text."""
    names, read_plain, others = _readers(message.DESCRIPTOR)
    row = dict(zip(names, read_plain(message), strict=True))
    for name, read in others:
        row[name] = read(message)
    row.update(more)
    return row


def to_message(cls: type[M], row: Mapping[str, Any]) -> M:
    """Return the message a row holds; columns without a field and fields without a column are left out."""
    message = cls()
    for name, write in _writers(cls.DESCRIPTOR):
        value = row.get(name)
        if value is not None:
            write(message, value)
    return message


def iso_time(moment: datetime.datetime) -> str:
    """Return a time as text that sorts like the time."""
    return moment.astimezone(datetime.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def timestamp(text: str) -> Timestamp:
    """Return the time a text holds."""
    stamp = Timestamp()
    stamp.FromJsonString(text)
    return stamp


def enum_text(descriptor: EnumDescriptor, number: int, field: str) -> str:
    """Return an enum value's name in lower case without the prefix; raise InvalidRequest if it isn't set or unknown."""
    name = _enum_names(descriptor).get(number, "")
    if not name:
        raise InvalidRequest(f"{field} is not set to a known value", field=field)
    return name


def enum_number(descriptor: EnumDescriptor, text: str) -> int:
    """Return the number of the enum value that `enum_text` named."""
    return _enum_numbers(descriptor)[text]


@cache
def _readers(descriptor: Descriptor) -> _Readers:
    """Return the names of the fields that a row holds as they are, what reads all of those at once, and the rest."""
    plain = [field.name for field in descriptor.fields if _is_plain(field)]
    others = tuple((field.name, _reader(field)) for field in descriptor.fields if not _is_plain(field))
    return tuple(plain), _attributes(plain), others


@cache
def _writers(descriptor: Descriptor) -> tuple[tuple[str, _Writer], ...]:
    return tuple((field.name, _writer(field)) for field in descriptor.fields)


def _attributes(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda message: tuple(getattr(message, name) for name in names)  # attrgetter makes no tuple of one


def _is_plain(field: FieldDescriptor) -> bool:
    return field.message_type is None and field.enum_type is None and not (field.is_repeated or field.has_presence)


def _reader(field: FieldDescriptor) -> _Reader:
    name = field.name
    if _is_map(field):
        return lambda message: dict(getattr(message, name))
    if field.is_repeated:
        return lambda message: list(getattr(message, name))
    if field.message_type is not None:
        return _message_reader(field)
    if field.enum_type is not None:
        names = _enum_names(field.enum_type)
        return lambda message: names.get(getattr(message, name), "")
    return lambda message: getattr(message, name) if message.HasField(name) else None


def _message_reader(field: FieldDescriptor) -> _Reader:
    name, kind = field.name, _kind(field)
    if kind == _TIMESTAMP:
        return lambda message: _time_text(getattr(message, name), name) if message.HasField(name) else None
    if kind == _DURATION:
        return lambda message: _seconds(getattr(message, name), name) if message.HasField(name) else None
    # The only other nested message of a row is a named map.
    return lambda message: dict(getattr(message, name).values)


def _writer(field: FieldDescriptor) -> _Writer:
    name = field.name
    if _is_map(field):
        return lambda message, value: getattr(message, name).update(value)
    if field.is_repeated:
        return lambda message, value: getattr(message, name).extend(value)
    if field.message_type is not None:
        return _message_writer(field)
    if field.enum_type is not None:
        numbers = _enum_numbers(field.enum_type)
        return lambda message, value: setattr(message, name, numbers.get(value, 0))
    return lambda message, value: setattr(message, name, value)


def _message_writer(field: FieldDescriptor) -> _Writer:
    name, kind = field.name, _kind(field)
    if kind == _TIMESTAMP:
        return lambda message, value: getattr(message, name).FromJsonString(value)
    if kind == _DURATION:
        return lambda message, value: getattr(message, name).FromMicroseconds(round(value * _MICROSECONDS))
    return lambda message, value: getattr(message, name).values.update(value)


def _kind(field: FieldDescriptor) -> str:
    return "" if field.message_type is None else field.message_type.full_name


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _time_text(stamp: Timestamp, field: str) -> str:
    try:
        return iso_time(stamp.ToDatetime(tzinfo=datetime.UTC))
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"{field} is no valid time", field=field) from error


def _seconds(duration: Duration, field: str) -> float:
    if abs(duration.seconds) > _MAX_DURATION_SECONDS or abs(duration.nanos) >= _NANOSECONDS:
        raise InvalidRequest(f"{field} is no valid duration", field=field)
    return duration.seconds + duration.nanos / _NANOSECONDS


@cache
def _enum_names(descriptor: EnumDescriptor) -> dict[int, str]:
    prefix = _prefix(descriptor)
    return {value.number: value.name.removeprefix(prefix).lower() for value in descriptor.values if value.number}


@cache
def _enum_numbers(descriptor: EnumDescriptor) -> dict[str, int]:
    return {name: number for number, name in _enum_names(descriptor).items()}


def _prefix(descriptor: EnumDescriptor) -> str:
    unspecified = next(value.name for value in descriptor.values if value.number == 0)
    return unspecified.removesuffix("UNSPECIFIED")
