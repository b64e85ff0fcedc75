"""AGT-3: a tree is checked when it is read, and the first fault is named."""

import copy
import json
from typing import Any

import pytest

from services.video_tree import TreeFault, frame_name, parse_tree, render_tree

SOUND: dict[str, Any] = {
    "videoID": "v1",
    "duration_category": "short",
    "duration_seconds": 20,
    "domain": "Sports",
    "nodes": {
        "v1_L1_000": {
            "level": 1,
            "time_range": [0, 20],
            "card": {"scene_summary": "A match.", "people": ["two", "boys"], "place": {"name": "field"}, "count": 2},
            "subtitle": None,
            "children_ids": ["v1_L2_000"],
        },
        "v1_L2_000": {
            "level": 2,
            "time_range": [0, 10.5],
            "card": {"event_description": "A goal."},
            "subtitle": "goal!",
            "children_ids": ["v1_L3_000"],
        },
        "v1_L3_000": {"level": 3, "time_range": [2, 2], "card": {"frame_summary": "A ball."}},
    },
}


def changed(path: str, value: object) -> bytes:
    document: Any = copy.deepcopy(SOUND)
    *parents, last = path.split("/")
    target = document
    for name in parents:
        target = target[name]
    target[last] = value
    return json.dumps(document).encode()


def test_agt_3_a_sound_tree_is_read_with_its_texts() -> None:
    tree = parse_tree(json.dumps(SOUND).encode())
    scene = tree.nodes["v1_L1_000"]
    assert scene.text == "A match."
    assert scene.details == (("people", "two; boys"), ("place", "name: field"), ("count", "2"))
    assert [node.text for node in tree.children(scene)] == ["A goal."]
    assert tree.nodes["v1_L3_000"].children_ids == ()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"{", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "JSON object"),
        (b'{"videoID": "a", "videoID": "b"}', "stands twice"),
        (changed("videoID", 7), "videoID must be text"),
        (changed("videoID", ""), "videoID is empty"),
        (changed("duration_seconds", "20"), "duration_seconds must be a number"),
        (changed("duration_seconds", True), "duration_seconds must be a number"),
        (changed("nodes", []), "at least one node"),
        (changed("nodes/v1_L1_000", 3), "node 'v1_L1_000': a node must be an object"),
        (changed("nodes/a~b", {}), "level must be 1, 2 or 3, not None"),
        (changed("nodes/v1_L1_000/level", 4), "level must be 1, 2 or 3, not 4"),
        (changed("nodes/v1_L1_000/level", True), "level must be"),
        (changed("nodes/v1_L1_000/time_range", [0]), "time_range must be [start, end]"),
        (changed("nodes/v1_L1_000/time_range", [0, "9"]), "time_range must be a number"),
        (changed("nodes/v1_L1_000/time_range", [9, 3]), "ends (3 s) before it starts (9 s)"),
        (changed("nodes/v1_L1_000/time_range", [-1, 3]), "not negative"),
        (changed("nodes/v1_L1_000/time_range", [0, float("inf")]), "finite"),
        (changed("nodes/v1_L1_000/time_range", [0, 10**400]), "too large"),
        (changed("nodes/v1_L1_000/time_range", [0, 30]), "ends at 30 s in a video of 20 s"),
        (changed("nodes/v1_L3_000/time_range", [15, 15]), "outside"),
        (changed("nodes/v1_L1_000/card", "text"), "card must be an object"),
        (changed("nodes/v1_L1_000/card/scene_summary", ["x"]), "scene_summary must be text"),
        (changed("nodes/v1_L1_000/card/scene_summary", "\ud800"), "cannot be stored"),
        (changed("nodes/v1_L1_000/subtitle", 5), "subtitle must be text"),
        (changed("nodes/v1_L1_000/children_ids", "v1_L2_000"), "list of node ids"),
        (changed("nodes/v1_L2_000/children_ids", ["v1_L3_009"]), "node 'v1_L2_000': its child 'v1_L3_009' is missing"),
        (changed("nodes/v1_L2_000/children_ids", []), "node 'v1_L3_000': it has level 3 and no parent"),
        (changed("nodes/v1_L1_000/children_ids", ["v1_L2_000"] * 2), "already has the parent"),
        (changed("nodes/v1_L3_000/children_ids", ["v1_L2_000"]), "already has the parent 'v1_L1_000'"),
        (changed("nodes/v1_L3_000/children_ids", ["v1_L1_000"]), "it is its own ancestor"),
        (changed("nodes/v1_L3_000/level", 2), "it has level 2 under 'v1_L2_000' of level 2"),
        (changed("nodes/a", {**SOUND["nodes"]["v1_L1_000"], "children_ids": ["a"]}), "its own ancestor (a < a)"),
    ],
)
def test_agt_3_the_first_fault_is_named(content: bytes, fault: str) -> None:
    with pytest.raises(TreeFault) as caught:
        parse_tree(content)
    assert fault in str(caught.value)


def test_agt_3_a_written_tree_reads_back_equal() -> None:
    tree = parse_tree(json.dumps(SOUND).encode())
    assert parse_tree(render_tree(tree)) == tree


@pytest.mark.parametrize(
    ("video_id", "node_id", "name"),
    [("v1", "v1_L3_004", "L3_004"), ("v1", "L3_004", "L3_004"), ("7", "7-000012", "000012")],
)
def test_agt_3_a_frame_is_named_after_its_node_without_the_video(video_id: str, node_id: str, name: str) -> None:
    assert frame_name(video_id, node_id) == name
