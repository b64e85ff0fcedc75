"""Reading and checking `tree.json` (AGT-3): the first fault is named, and no faulty tree gets through."""

import json
import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from services.video_tree.tree import EVENT, FRAME, SCENE, TEXT_FIELDS, Node, VideoTree

_TOLERANCE_SECONDS = 1.0
_LEVELS = (SCENE, EVENT, FRAME)


class TreeFault(ValueError):
    """What is wrong with a tree; `node_id` names the node, or is empty where the whole file is at fault."""

    def __init__(self, reason: str, node_id: str = "") -> None:
        self.reason = reason
        self.node_id = node_id
        super().__init__(f"node {node_id!r}: {reason}" if node_id else reason)


def parse_tree(content: bytes) -> VideoTree:
    """The tree of a `tree.json`. Raises TreeFault with the first fault.

    Checked in this order: UTF-8, JSON, the types of the fields, node by node; then the shape: every child exists
    and has one parent, no cycle, a child is one level below its parent, every node hangs under a scene; then
    time: ranges run forward, lie in the video and in their parent's range (one second of tolerance).
    """
    document = _document(content)
    nodes = _nodes(document)
    tree = VideoTree(
        video_id=_text(document, "videoID", required=True),
        duration_category=_text(document, "duration_category"),
        duration_seconds=_duration(document),
        domain=_text(document, "domain"),
        nodes=MappingProxyType(nodes),
    )
    parents = _parents(nodes)
    _check_cycles(parents)
    _check_levels(nodes, parents)
    _check_times(tree, parents)
    return tree


def _document(content: bytes) -> Mapping[str, object]:
    try:
        document = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_unique_keys)
    except UnicodeDecodeError as error:
        raise TreeFault(f"not UTF-8: {error.reason} at byte {error.start + 1}") from error
    except TreeFault:
        raise
    except (ValueError, RecursionError) as error:
        raise TreeFault(f"not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise TreeFault(f"the file must hold a JSON object, not {type(document).__name__}")
    return document


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise TreeFault(f"the key {key!r} stands twice in one object")
        found[key] = value
    return found


def _text(record: Mapping[str, object], name: str, node_id: str = "", *, required: bool = False) -> str:
    value = record.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        raise TreeFault(f"{name} must be text", node_id)
    if required and not value.strip():
        raise TreeFault(f"{name} is empty", node_id)
    return _storable(value, name, node_id)


def _storable(text: str, name: str, node_id: str) -> str:
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise TreeFault(f"{name} holds a character that cannot be stored (NUL or half a surrogate pair)", node_id)
    return text.strip()


def _number(value: object, name: str, node_id: str = "") -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TreeFault(f"{name} must be a number of seconds", node_id)
    try:
        number = float(value)
    except OverflowError as error:
        raise TreeFault(f"{name} is too large", node_id) from error
    if not math.isfinite(number) or number < 0:
        raise TreeFault(f"{name} must be finite and not negative", node_id)
    return number


def _duration(document: Mapping[str, object]) -> float:
    value = document.get("duration_seconds")
    return 0.0 if value is None else _number(value, "duration_seconds")


def _nodes(document: Mapping[str, object]) -> dict[str, Node]:
    records = document.get("nodes")
    if not isinstance(records, dict) or not records:
        raise TreeFault("nodes must be an object that holds at least one node")
    return {node_id: _node(node_id, record) for node_id, record in records.items()}


def _node(node_id: str, record: object) -> Node:
    if not node_id.strip() or not node_id.isprintable() or "/" in node_id or "\\" in node_id:
        raise TreeFault("a node id must be one printable line without a path separator", node_id)
    if not isinstance(record, dict):
        raise TreeFault("a node must be an object", node_id)
    level = record.get("level")
    if isinstance(level, bool) or level not in _LEVELS or not isinstance(level, int):
        raise TreeFault(f"level must be 1, 2 or 3, not {level!r}", node_id)
    start, end = _time_range(record.get("time_range"), node_id)
    text, details = _card(record.get("card"), level, node_id)
    subtitle = _text(record, "subtitle", node_id)
    return Node(node_id, level, start, end, text, details, subtitle, _children_ids(record.get("children_ids"), node_id))


def _time_range(value: object, node_id: str) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise TreeFault("time_range must be [start, end] in seconds", node_id)
    start, end = (_number(bound, "time_range", node_id) for bound in value)
    if end < start:
        raise TreeFault(f"time_range ends ({end:g} s) before it starts ({start:g} s)", node_id)
    return start, end


def _card(value: object, level: int, node_id: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    if value is None:
        return "", ()
    if not isinstance(value, dict):
        raise TreeFault("card must be an object", node_id)
    main_field = TEXT_FIELDS[level]
    details = (
        (name, _storable(_flat(field), f"card.{name}", node_id)) for name, field in value.items() if name != main_field
    )
    return _text(value, main_field, node_id), tuple((name, text) for name, text in details if text)


def _flat(value: object) -> str:
    """A card field in words: lists joined, objects as `name: value`."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(filter(None, map(_flat, value)))
    if isinstance(value, dict):
        return "; ".join(f"{name}: {text}" for name, field in value.items() if (text := _flat(field)))
    return json.dumps(value)


def _children_ids(value: object, node_id: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(child, str) for child in value):
        raise TreeFault("children_ids must be a list of node ids", node_id)
    return tuple(value)


def _parents(nodes: Mapping[str, Node]) -> dict[str, str]:
    """Each child's one parent."""
    parents: dict[str, str] = {}
    for node in nodes.values():
        for child_id in node.children_ids:
            if child_id not in nodes:
                raise TreeFault(f"its child {child_id!r} is missing", node.node_id)
            if child_id in parents:
                raise TreeFault(f"its child {child_id!r} already has the parent {parents[child_id]!r}", node.node_id)
            parents[child_id] = node.node_id
    return parents


def _check_cycles(parents: Mapping[str, str]) -> None:
    sound: set[str] = set()
    for node_id in parents:
        path = {node_id: None}
        current = node_id
        while (current := parents.get(current, "")) and current not in sound:
            if current in path:
                raise TreeFault(f"it is its own ancestor ({_cycle(path, current)})", current)
            path[current] = None
        sound.update(path)


def _cycle(path: Iterable[str], start: str) -> str:
    members = list(path)
    members = members[members.index(start) :]
    return " < ".join([*members, start])


def _check_levels(nodes: Mapping[str, Node], parents: Mapping[str, str]) -> None:
    for node in nodes.values():
        parent_id = parents.get(node.node_id)
        if parent_id is None and node.level != SCENE:
            raise TreeFault(f"it has level {node.level} and no parent", node.node_id)
        if parent_id is not None and node.level != nodes[parent_id].level + 1:
            raise TreeFault(
                f"it has level {node.level} under {parent_id!r} of level {nodes[parent_id].level}", node.node_id
            )


def _check_times(tree: VideoTree, parents: Mapping[str, str]) -> None:
    for node in tree.nodes.values():
        if tree.duration_seconds and node.end_seconds > tree.duration_seconds + _TOLERANCE_SECONDS:
            raise TreeFault(
                f"it ends at {node.end_seconds:g} s in a video of {tree.duration_seconds:g} s", node.node_id
            )
        parent_id = parents.get(node.node_id)
        if parent_id is not None and not _within(node, tree.nodes[parent_id]):
            raise TreeFault(f"its time range lies outside that of its parent {parent_id!r}", node.node_id)


def _within(node: Node, parent: Node) -> bool:
    return (
        node.start_seconds >= parent.start_seconds - _TOLERANCE_SECONDS
        and node.end_seconds <= parent.end_seconds + _TOLERANCE_SECONDS
    )
