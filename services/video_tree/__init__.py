"""The video tree: scenes (L1), events (L2) and key frames (L3) of one video (pure)."""

from services.video_tree.parse import TreeFault, parse_tree
from services.video_tree.render import render_tree
from services.video_tree.tree import EVENT, FRAME, SCENE, TEXT_FIELDS, Node, VideoTree, frame_name

__all__ = [
    "EVENT",
    "FRAME",
    "SCENE",
    "TEXT_FIELDS",
    "Node",
    "TreeFault",
    "VideoTree",
    "frame_name",
    "parse_tree",
    "render_tree",
]
