"""The video tree as the judge sees it, and what of it the agent saw."""

from collections.abc import Iterable, Iterator

from services.evolver.domain.case import Case
from services.evolver.domain.trace import estimate_tokens, shortened
from services.video_tree import SCENE, Node, VideoTree

# (deepest level, characters a line) from full to sparse; the first that fits the bound is taken.
_DENSITIES = ((3, 1000), (3, 300), (3, 150), (2, 300), (2, 150), (2, 80), (1, 300), (1, 100))
# The first message of a conversation shows every scene's text up to this length.
_OVERVIEW_CHARS = 400
_NOTE_CHARS = 400


def node_source(node: Node) -> str:
    """Return all that the tree says of a node: main text, other fields of its card, subtitle."""
    parts = [node.text, *(f"{name}: {text}" for name, text in node.details)]
    return "\n".join(filter(None, [*parts, f"subtitle: {node.subtitle}" if node.subtitle else ""]))


def node_line(node: Node, max_chars: int) -> str:
    """Return one line `- id [12s-40s] text`, indented by level."""
    text = shortened(" ".join(node_source(node).split()), max_chars)
    return f"{'  ' * (node.level - 1)}- {node.node_id} [{node.start_seconds:g}s-{node.end_seconds:g}s] {text}"


def tree_outline(tree: VideoTree, max_tokens: int) -> str:
    """Return the tree as lines of at most `max_tokens`; what was left out is said in a last line."""
    for depth, max_chars in _DENSITIES:
        lines = [node_line(node, max_chars) for node in _in_order(tree, depth)]
        text = "\n".join([*lines, *_left_out(len(tree.nodes) - len(lines))])
        if estimate_tokens(text) <= max_tokens:
            return text
    kept: list[str] = []
    for line in lines:
        if estimate_tokens("\n".join([*kept, line, *_left_out(len(tree.nodes))])) > max_tokens:
            break
        kept.append(line)
    return "\n".join([*kept, *_left_out(len(tree.nodes) - len(kept))])


def _left_out(count: int) -> list[str]:
    return [f"[... {count} nodes left out ...]"] if count else []


def _in_order(tree: VideoTree, depth: int) -> Iterator[Node]:
    def walk(node: Node) -> Iterator[Node]:
        yield node
        if node.level < depth:
            for child in tree.children(node):
                yield from walk(child)

    for scene in tree.at_level(SCENE):
        yield from walk(scene)


def visited_text(case: Case) -> str:
    """Return the opened nodes as one line each, in order of the first visit."""
    return "\n".join(f"- {node}" for node in dict.fromkeys(case.opened_nodes)) or "(none)"


def node_notes(case: Case, node_ids: Iterable[str]) -> list[str]:
    """Return one line `id [12s-40s] text` for each node of the tree among these, each once, long texts shortened."""
    nodes = case.tree.nodes if case.tree else {}
    known = [nodes[node_id] for node_id in dict.fromkeys(node_ids) if node_id in nodes]
    return [node_line(node, _NOTE_CHARS).strip().removeprefix("- ") for node in known]


def was_seen(case: Case, node: Node) -> bool:
    """Tell whether the agent saw what a node says.

    It did if it opened the node, if the node's whole text stood in an output (a list of children or search results),
    if it is a scene short enough for the overview, or if it saw all of the node's children.
    """
    if node.node_id in case.opened_nodes or (node.level == SCENE and len(node.text) <= _OVERVIEW_CHARS):
        return True
    text = " ".join(node.text.split())
    if text and any(text in " ".join(step.output.split()) for step in case.trace):
        return True
    children = case.tree.children(node) if case.tree else []
    return bool(children) and all(was_seen(case, child) for child in children)
