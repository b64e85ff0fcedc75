"""What the agent has seen of the tree so far, gathered from the overview and the observations."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from services.simulator.domain.conversation import Conversation, Step

_LINE = re.compile(r"^\s*- (\S+) \[([\d.]+)s?\s*-\s*([\d.]+)s?\](?: \(score [^)]*\))?\s*(.*)$", re.MULTILINE)
_NODE = re.compile(
    r'<node id="([^"]+)" level="(\d)" time="([\d.]+)s?\s*-\s*([\d.]+)s?"[^>]*>\n?(.*?)\n?</node>', re.DOTALL
)
_CHILDREN = re.compile(r"<children>\n?(.*?)\n?</children>", re.DOTALL)


@dataclass(slots=True)
class Seen:
    """One node: its span in seconds, its level (0 if not known yet), and the fullest text seen of it."""

    node_id: str
    start: float
    end: float
    level: int = 0
    text: str = ""
    opened: bool = False

    @property
    def middle(self) -> float:
        """The middle of the node's time span, in seconds."""
        return (self.start + self.end) / 2


@dataclass(slots=True)
class Memory:
    """All nodes seen, the hits of each search by its query, what was opened, and what the frames showed."""

    nodes: dict[str, Seen] = field(default_factory=dict)
    hits: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    frames: list[str] = field(default_factory=list)

    def level(self, level: int) -> list[Seen]:
        """The nodes known to be of one level, in the order of time."""
        return sorted((n for n in self.nodes.values() if n.level == level), key=lambda n: (n.start, n.end, n.node_id))

    def container(self, node: Seen, level: int) -> Seen | None:
        """The node of the given level whose span holds the middle of another."""
        return next((n for n in self.level(level) if n.start <= node.middle < n.end), None)

    def scenes(self) -> list[Seen]:
        """The top level."""
        return self.level(1)


def remember(conversation: Conversation) -> Memory:
    """Everything the conversation has shown, in the order in which it was shown."""
    memory = Memory()
    _take_lines(memory, conversation.overview, level=1)
    for step in conversation.steps:
        memory.tried.add(attempt(step.tool, step.args))
        if step.tool == "view_node":
            _take_view(memory, step)
        elif step.tool == "search_similar":
            memory.hits[str(step.args.get("query", ""))] = tuple(_take_lines(memory, step.output, level=0))
        elif step.tool == "observe_frame" and step.output:
            memory.frames.append(step.output)
    return memory


def attempt(tool: str, args: dict[str, object]) -> str:
    """The name under which a tool call is remembered as tried, whether it worked or not."""
    subject = args.get("node_id") or args.get("node_ids") or args.get("query") or args.get("name") or ""
    return f"{tool}:{subject}"


def _take_lines(memory: Memory, text: str, level: int) -> list[str]:
    found: list[str] = []
    for node_id, start, end, line_text in _LINE.findall(text):
        _merge(memory, node_id, float(start), float(end), level, line_text, opened=False)
        found.append(node_id)
    return found


def _take_view(memory: Memory, step: Step) -> None:
    node = _NODE.search(step.output)
    if node is None:
        return
    level = int(node[2])
    _merge(memory, node[1], float(node[3]), float(node[4]), level, _CHILDREN.sub("", node[5]), opened=True)
    children = _CHILDREN.search(step.output)
    if children:
        _take_lines(memory, children[1], level=level + 1)


def _merge(memory: Memory, node_id: str, start: float, end: float, level: int, text: str, opened: bool) -> None:
    seen = memory.nodes.setdefault(node_id, Seen(node_id, start, end))
    seen.level = seen.level or level
    seen.opened = seen.opened or opened
    if opened or len(text) > len(seen.text):
        seen.text = text


def outline_nodes(text: str) -> list[tuple[str, str]]:
    """(node id, text) of every line of a tree's outline."""
    return [(found[0], found[3]) for found in _LINE.findall(text)]
