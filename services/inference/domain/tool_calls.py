"""Merges the pieces of tool calls that a stream carries (INF-3)."""

from __future__ import annotations

from typing import Any

import orjson

from services.inference.domain.chat import ToolCall, ToolCallPiece

_MAX_INDEX = 4095


class _Call:
    __slots__ = ("arguments", "call_id", "index", "name")

    def __init__(self, index: int) -> None:
        self.index = index
        self.call_id = ""
        self.name = ""
        self.arguments: list[str] = []


class ToolCallMerger:
    """Collects pieces by index and keeps everything that comes.

    Servers differ: some leave the index out, some give every call the index 0. A piece without an index belongs to
    the last call; a piece that brings another id, or a name after complete arguments, begins a new call under the
    next free index.
    """

    __slots__ = ("_by_index", "_calls")

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._by_index: dict[int, _Call] = {}

    def add(self, piece: dict[str, Any]) -> ToolCallPiece:
        """Take one element of a delta's `tool_calls`; returns what it adds, under its call's own index."""
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        call_id, name = _text(piece.get("id")), _text(function.get("name"))
        call = self._call_for(piece.get("index"), call_id, name)
        added = ToolCallPiece(
            call.index, "" if call.call_id else call_id, "" if call.name else name, _arguments(function)
        )
        call.call_id = call.call_id or call_id
        call.name = call.name or name
        call.arguments.append(added.arguments)
        return added

    def result(self) -> tuple[ToolCall, ...]:
        """The calls in the order of their index."""
        calls = sorted(self._calls.values(), key=lambda call: call.index)
        return tuple(ToolCall(call.call_id, call.name, "".join(call.arguments)) for call in calls)

    def _call_for(self, given: object, call_id: str, name: str) -> _Call:
        last = next(reversed(self._calls.values()), None)
        if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= _MAX_INDEX:
            index, call = given, self._by_index.get(given)
        else:
            index, call = (last.index if last else 0), last
        if call is None or _begins_another(call, call_id, name):
            call = _Call(index if index not in self._calls else max(self._calls) + 1)
            self._calls[call.index] = call
            self._by_index[index] = call
        return call


def _arguments(function: dict[str, Any]) -> str:
    arguments = function.get("arguments")
    if isinstance(arguments, dict):
        return orjson.dumps(arguments).decode()
    return _text(arguments)


def _begins_another(call: _Call, call_id: str, name: str) -> bool:
    if not name or not call.name:
        return False
    if call_id and call.call_id:
        return call_id != call.call_id
    return _is_json("".join(call.arguments))


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
