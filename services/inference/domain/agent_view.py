"""How the agent sees a video tree: lines and tags that a model reads and a person can check."""

from collections.abc import Iterable
from html import escape

from services.video_tree import SCENE, Node, VideoTree

_OVERVIEW_CHARS = 400
_CHILD_CHARS = 200
_CUT_MARK = "…"


def video_text(tree: VideoTree) -> str:
    """Id, duration and, where known, domain of the video."""
    facts = [f"id: {tree.video_id}"]
    if tree.duration_seconds:
        facts.append(f"duration: {_seconds(tree.duration_seconds)}")
    if tree.domain:
        facts.append(f"domain: {tree.domain}")
    return "\n".join(facts)


def overview_text(tree: VideoTree) -> str:
    """One line for each scene, by time."""
    return "\n".join(node_line(node, _OVERVIEW_CHARS) for node in tree.at_level(SCENE))


def node_text(node: Node) -> str:
    """All that is said of a node: its main text, the other fields of its card, its subtitle."""
    parts = [node.text, *(f"{name}: {text}" for name, text in node.details)]
    if node.subtitle:
        parts.append(f"subtitle: {node.subtitle}")
    return "\n".join(part for part in parts if part)


def node_view(node: Node, text: str, children: Iterable[Node]) -> str:
    """The output of `view_node`: `text` is the node's text, as it is or condensed."""
    view = f'<node id="{escape(node.node_id)}" level="{node.level}" time="{_time_range(node)}">{text}</node>'
    lines = "\n".join(node_line(child, _CHILD_CHARS) for child in children)
    return f"{view}\n<children>\n{lines}\n</children>" if lines else view


def node_line(node: Node, most_chars: int, note: str = "") -> str:
    """One line `- id [12s-40s] text`, the text cut at a word; `note` stands before the text."""
    text = cut_at_word(" ".join((node.text or node_text(node)).split()), most_chars)
    return " ".join(filter(None, [f"- {node.node_id}", f"[{_time_range(node)}]", note, text]))


def frame_lines(frames: Iterable[Node]) -> str:
    """The frames shown to the vision model, in order."""
    return "\n".join(
        f"{number}. {frame.node_id} [{_time_range(frame)}]" for number, frame in enumerate(frames, start=1)
    )


def cut_at_word(text: str, most_chars: int) -> str:
    """The text if it is short enough, else its beginning up to a word's end, and an ellipsis."""
    if len(text) <= most_chars:
        return text
    beginning = text[:most_chars].rsplit(" ", 1)[0].rstrip(" ,;:")
    return beginning + _CUT_MARK


def _time_range(node: Node) -> str:
    return f"{_seconds(node.start_seconds)}-{_seconds(node.end_seconds)}"


def _seconds(value: float) -> str:
    return f"{round(value, 2):.10g}s"


def observation(tool: str, step: int, steps_left: int, output: str) -> str:
    """The message that carries a tool's output; `step` counts from 1."""
    return f'<observation tool="{escape(tool)}" step="{step}" steps_left="{steps_left}">\n{output}\n</observation>'
