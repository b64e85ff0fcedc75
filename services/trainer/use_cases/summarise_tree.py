"""Events and scenes of a tree summed up by a model instead of by extraction (`--summarise`)."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from services.trainer.use_cases.import_ports import Summariser
from services.video_tree import EVENT, SCENE, Node, VideoTree

_MOST_CHARS: Mapping[int, int] = {EVENT: 420, SCENE: 560}


async def summarise_tree(tree: VideoTree, summariser: Summariser) -> VideoTree:
    """The tree with new texts of its events, from their frames, then of its scenes, from those events.

    A summary that comes back empty leaves the extractive text. Raises ServiceFailed.
    """
    nodes = dict(tree.nodes)
    for level in (EVENT, SCENE):
        for node in tree.at_level(level):
            nodes[node.node_id] = await _summarised(node, nodes, summariser)
    return replace(tree, nodes=MappingProxyType(nodes))


async def _summarised(node: Node, nodes: Mapping[str, Node], summariser: Summariser) -> Node:
    descriptions = [nodes[child_id].text for child_id in node.children_ids]
    time = f"{node.start_seconds:g}s-{node.end_seconds:g}s"
    text = await summariser.summary(time, descriptions, _MOST_CHARS[node.level])
    return replace(node, text=text.strip() or node.text)
