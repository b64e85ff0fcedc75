"""Reading the agent's reply (AGT-1): lenient JSON, but only if it holds one unambiguous object."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import json_repair

JsonObject: TypeAlias = dict[str, Any]

_LONGEST_REPLY_CHARS = 200_000
_LONGEST_REPAIR_CHARS = 8_000
_MOST_REPAIR_MARKS: Mapping[str, int] = {"{": 50, "[": 50, '"': 400}
_END_OF_THINKING = "</think>"
_ACTION_KEY = re.compile(r"""["'“”]?\baction["'“”]?\s*:""")


class UnreadableReply(ValueError):
    """A reply from which no single object can be read; the message is written for the model."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply of the agent, read."""

    reflect: str
    plan: str
    tool: str
    args: Mapping[str, Any]

    @property
    def thought(self) -> str:
        """Reflection and plan, as they are kept in the trace."""
        return "\n".join(part for part in (self.reflect, self.plan) if part)


def read_turn(reply: str, *, cut_off: bool = False) -> Turn:
    """The turn in a reply. Raises UnreadableReply, which says what is wrong with it.

    `cut_off` says that the reply ended at the token limit: such a reply is never read.
    """
    record = read_object(reply, cut_off=cut_off)
    action = record.get("action")
    if not isinstance(action, dict):
        raise UnreadableReply('the object has no "action" that is an object with "tool" and "args"')
    tool = action.get("tool")
    if not isinstance(tool, str) or not tool.strip():
        raise UnreadableReply('"action" has no "tool" that is the name of a tool')
    args = action.get("args")
    if args is not None and not isinstance(args, dict):
        raise UnreadableReply('"args" must be an object')
    return Turn(_words(record.get("reflect")), _words(record.get("plan")), tool.strip(), args or {})


def read_object(reply: str, *, cut_off: bool = False) -> JsonObject:
    """The one JSON object in a reply; small faults of syntax are repaired, code fences and prose around it ignored.

    The same object twice is one. Raises UnreadableReply for none, for two different ones (also within one object: a
    key twice with different values), and for a reply that was cut off.
    """
    if cut_off:
        raise UnreadableReply("the reply was cut off at the token limit; write less")
    text = reply.rpartition(_END_OF_THINKING)[2].strip()
    if len(text) > _LONGEST_REPLY_CHARS:
        raise UnreadableReply("the reply is far too long; write less")
    try:
        found = _objects(text)
    except UnreadableReply:
        raise
    except (RecursionError, ValueError) as error:
        raise UnreadableReply(f"the reply could not be read as JSON: {error}") from error
    if not found:
        raise UnreadableReply("the reply holds no JSON object")
    if len(found) > 1:
        raise UnreadableReply("the reply holds more than one JSON object; send exactly one")
    return found[0]


def _objects(text: str) -> list[JsonObject]:
    """The different objects at the top level: those that are valid, then those that the rest can be repaired to."""
    found: list[JsonObject] = []
    position = text.find("{")
    while position >= 0:
        try:
            value, position_after = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError:
            return _different([*found, *_repaired(text[position:])])
        found.append(value)
        position = text.find("{", position_after)
    return _different(found)


def _repaired(text: str) -> list[JsonObject]:
    """The objects in a text that is no valid JSON.

    json_repair keeps the last of several objects with the same keys, so several actions are found by their key. Its
    time grows with the square of brackets and quotes, so that only what could be a turn is given to it.
    """
    too_many_marks = any(text.count(mark) > most for mark, most in _MOST_REPAIR_MARKS.items())
    if len(text) > _LONGEST_REPAIR_CHARS or too_many_marks:
        raise UnreadableReply("the reply isn't valid JSON")
    if len(_ACTION_KEY.findall(text)) > 1:
        raise UnreadableReply("the reply holds more than one action and isn't valid JSON; send exactly one object")
    value = json_repair.loads(text)
    candidates = value if isinstance(value, list) else [value]
    return [candidate for candidate in candidates if isinstance(candidate, dict) and candidate]


def _different(objects: list[JsonObject]) -> list[JsonObject]:
    return [value for index, value in enumerate(objects) if value not in objects[:index]]


def _one_meaning(pairs: list[tuple[str, Any]]) -> JsonObject:
    found: JsonObject = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise UnreadableReply(f"the key {key!r} stands twice with different values")
        found[key] = value
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_one_meaning, parse_constant=str, strict=False)


def _words(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
