"""Small sound trees and questions for tests."""

import json

from services.inference.use_cases.answer_ports import LoadedTree
from services.questions import Question
from services.video_tree import VideoTree, parse_tree

KITCHEN = {
    "videoID": "v1",
    "duration_category": "short",
    "duration_seconds": 60,
    "domain": "Cooking",
    "nodes": {
        "v1_L1_0": ([0, 30], 1, "A cook prepares vegetables in a kitchen.", ["v1_L2_0", "v1_L2_1"], ""),
        "v1_L1_1": ([30, 60], 1, "A dog waits at the door.", ["v1_L2_2"], ""),
        "v1_L2_0": ([0, 10], 2, "The cook washes three carrots.", ["v1_L3_0", "v1_L3_1"], "Wash them well."),
        "v1_L2_1": ([10, 30], 2, "The cook slices an onion with a red knife.", ["v1_L3_2"], ""),
        "v1_L2_2": ([30, 60], 2, "The dog is barking at a bicycle.", [f"v1_L3_{i}" for i in range(3, 9)], ""),
        **{
            f"v1_L3_{i}": ([(0, 5, 20, 30, 35, 40, 45, 50, 55)[i]] * 2, 3, f"Frame number {i}.", [], "")
            for i in range(9)
        },
    },
}
_FIELDS = {1: "scene_summary", 2: "event_description", 3: "frame_summary"}


def tree_json(document: dict = KITCHEN, video_id: str = "v1") -> bytes:  # type: ignore[type-arg]
    """The `tree.json` of a short description of a tree."""
    nodes = {
        node_id: {
            "level": level,
            "time_range": time_range,
            "card": {_FIELDS[level]: text},
            "subtitle": subtitle,
            "children_ids": children,
        }
        for node_id, (time_range, level, text, children, subtitle) in document["nodes"].items()
    }
    return json.dumps({**document, "videoID": video_id, "nodes": nodes}).encode()


def kitchen() -> VideoTree:
    """A cook, carrots, an onion, a red knife, a dog and a bicycle."""
    return parse_tree(tree_json())


def loaded_kitchen() -> LoadedTree:
    """The kitchen with a fingerprint."""
    return LoadedTree(kitchen(), "0" * 64)


def question(question_id: str = "q1", answer: str = "B", **fields: object) -> Question:
    """A question about the kitchen."""
    values: dict[str, object] = {
        "question_id": question_id,
        "video_id": "v1",
        "task_type": "Counting Problem",
        "text": "How many carrots are washed?",
        "options": ("Two", "Three", "Four"),
        "answer": answer,
        "unit_id": question_id,
        **fields,
    }
    return Question(**values)  # type: ignore[arg-type]
