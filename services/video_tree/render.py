"""Writing `tree.json`."""

import json

from services.video_tree.tree import TEXT_FIELDS, Node, VideoTree


def render_tree(tree: VideoTree) -> bytes:
    """The `tree.json` of this tree; parsing it gives an equal tree."""
    document = {
        "videoID": tree.video_id,
        "duration_category": tree.duration_category,
        "duration_seconds": tree.duration_seconds,
        "domain": tree.domain,
        "nodes": {node_id: _node_record(node) for node_id, node in tree.nodes.items()},
    }
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def _node_record(node: Node) -> dict[str, object]:
    return {
        "level": node.level,
        "time_range": [node.start_seconds, node.end_seconds],
        "card": {TEXT_FIELDS[node.level]: node.text, **dict(node.details)},
        "subtitle": node.subtitle,
        "children_ids": list(node.children_ids),
    }
