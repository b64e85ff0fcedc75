"""The tree as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SCENE: Final = 1
EVENT: Final = 2
FRAME: Final = 3
TEXT_FIELDS: Final[Mapping[int, str]] = {SCENE: "scene_summary", EVENT: "event_description", FRAME: "frame_summary"}


@dataclass(frozen=True, slots=True)
class Node:
    """One scene, event or key frame.

    `text` is the main text of its level; `details` are the card's other fields as (name, text); times are
    seconds from the start of the video.
    """

    node_id: str
    level: int
    start_seconds: float
    end_seconds: float
    text: str
    details: tuple[tuple[str, str], ...]
    subtitle: str
    children_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VideoTree:
    """A checked tree; `nodes` keeps the order of the file. `duration_seconds` is 0 where the file gives none."""

    video_id: str
    duration_category: str
    duration_seconds: float
    domain: str
    nodes: Mapping[str, Node]

    def at_level(self, level: int) -> list[Node]:
        """The nodes of a level by time."""
        found = [node for node in self.nodes.values() if node.level == level]
        return sorted(found, key=lambda node: (node.start_seconds, node.end_seconds))

    def children(self, node: Node) -> list[Node]:
        """The node's children in the order the node lists them."""
        return [self.nodes[child_id] for child_id in node.children_ids]


def frame_name(video_id: str, node_id: str) -> str:
    """The name of an L3 node's frame, stored as `frames/<name>.jpg`: its id without the video's prefix."""
    own = node_id.removeprefix(video_id).lstrip("_-:. ") if node_id.startswith(video_id) else node_id
    return own or node_id
