"""Writes a made-up question set in Video-MME's forms, with trees, to rehearse the experiment without the real set.

    python examples/videomme/rehearsal.py FOLDER [--videos 300] [--seed 0]

Gives FOLDER/nested.json, flat.json, flat.parquet (with pyarrow) and trees/<number>/tree.json. Nothing of it comes from
the real set: people, actions and places are drawn from the lists below, and a question asks for one fact of one event.
It has the real set's irregularities: option texts that repeat, question texts that recur, newlines inside questions,
characters outside ASCII, options without a final period.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[1]))

from services.video_tree import EVENT, FRAME, SCENE, Node, VideoTree, render_tree  # noqa: E402 - the path is set above

FIRST_NUMBER = 601
QUESTIONS_A_VIDEO = 3
UNTOLD = 3
"""Of every so many events the tree doesn't tell reason and place: no tree says everything that is asked for."""
SCENES, EVENTS_A_SCENE, FRAMES_AN_EVENT, EVENT_SECONDS = 16, 5, 2, 24

FACTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "who": (
            *(
                "a café owner",
                "a ferry pilot",
                "the younger referee",
                "a stonemason",
                "the choir leader",
                "a beekeeper",
            ),
            *("the night porter", "a glider pilot", "a market trader", "the tallest runner", "a bookbinder", "a vet"),
        ),
        "does": (
            *("lifts", "repairs", "weighs", "hides", "paints", "measures", "unpacks"),
            *("polishes", "sketches", "drops", "wraps", "sells", "counts", "borrows"),
        ),
        "what": (
            *("lantern", "ladder", "violin", "suitcase", "compass", "saddle", "kettle"),
            *("telescope", "anchor", "trophy", "typewriter", "umbrella", "globe", "drum"),
        ),
        "colour": ("red", "dark green", "yellow", "silver", "sky blue", "brown", "violet", "white"),
        "where": (
            *("beside the fountain", "under the bridge", "in the cellar", "on the upper deck", "behind the counter"),
            *("at the north gate", "in the orchard", "next to the chapel", "on the platform", "by the boathouse"),
        ),
        "why": (
            *("to settle a bet", "to please a visitor", "to win the £500 prize", "to replace a broken one"),
            *("to hide a mistake", "to prepare the parade", "to keep a promise", "to test the scales"),
        ),
        "sign": ("CAFÉ ①", "NO ENTRY", "GATE ②", "OPEN LATE", "PLATFORM ③", "MIND THE STEP", "SALE", "WET PAINT"),
    }
)
ASKS: Final[Mapping[str, tuple[int, str, str]]] = MappingProxyType(
    {
        "Action Reasoning": (27, "why", "Why is it that {who} {does} the {what}?"),
        "Object Reasoning": (22, "what", "Which object does {who} need {why}?"),
        "Information Synopsis": (12, "who", "What is this video mainly about?"),
        "Temporal Reasoning": (9, "does", "What does {who} do to the {what} at {time}?"),
        "Object Recognition": (7, "what", "What is it that {who} {does} {where}?"),
        "Action Recognition": (6, "does", "In the part {where}, which of these happens to the {what}?"),
        "Counting Problem": (5, "count", "How many times is the {what} mentioned\nin the scene at {time}?"),
        "Attribute Perception": (4, "colour", "What colour is the {what} that {who} {does}?"),
        "OCR Problems": (3, "sign", "What does the sign say\nwhere {who} {does} the {what}?"),
        "Spatial Reasoning": (2, "where", "Where is the {what} when {who} {does} it?"),
        "Temporal Perception": (2, "who", "Who is seen first {where}?"),
        "Spatial Perception": (1, "where", "Where does {who} stand?"),
    }
)
"""Each task type with its weight, the fact that it asks for, and its question."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The videos of Video-MME's nested form, and the tree of each by `video_id`."""

    nested: list[dict[str, Any]]
    trees: Mapping[str, VideoTree]

    def flat(self) -> list[dict[str, Any]]:
        """The flat form: one object a question."""
        about = ("video_id", "duration", "domain", "sub_category", "url", "videoID")
        return [
            {
                **{name: video[name] for name in about},
                **{key: value for key, value in asked.items() if key != "response"},
            }
            for video in self.nested
            for asked in video["questions"]
        ]


def make_rehearsal(videos: int = 300, seed: int = 0) -> Rehearsal:
    """A set of `videos` long videos with three questions each; the same seed gives the same set."""
    nested: list[dict[str, Any]] = []
    trees: dict[str, VideoTree] = {}
    for number in range(FIRST_NUMBER, FIRST_NUMBER + videos):
        draw = random.Random(f"{seed}:{number}")  # noqa: S311 - a reproducible draw, no secret
        video_id = str(number)
        events = [_event(draw) for _ in range(SCENES * EVENTS_A_SCENE)]
        trees[video_id] = _tree(video_id, events)
        questions = [_question(draw, f"{video_id}-{at}", events) for at in range(1, QUESTIONS_A_VIDEO + 1)]
        nested.append(
            {
                "video_id": video_id,
                "duration": "long",
                "domain": "Rehearsal",
                "sub_category": "Made up",
                "url": f"https://example.invalid/{number}",
                "videoID": f"made-up_{number}",
                "questions": questions,
            }
        )
    return Rehearsal(nested, MappingProxyType(trees))


def write_rehearsal(rehearsal: Rehearsal, folder: Path) -> list[Path]:
    """Writes all forms and the trees; returns the question files. Without pyarrow there is no parquet."""
    for video_id, tree in rehearsal.trees.items():
        path = folder / "trees" / video_id
        path.mkdir(parents=True, exist_ok=True)
        (path / "tree.json").write_bytes(render_tree(tree))
    written = [folder / "nested.json", folder / "flat.json"]
    for path, content in zip(written, (rehearsal.nested, rehearsal.flat()), strict=True):
        path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return written
    pq.write_table(pa.Table.from_pylist(rehearsal.flat()), folder / "flat.parquet")
    return [*written, folder / "flat.parquet"]


def _event(draw: random.Random) -> dict[str, str]:
    return {name: draw.choice(values) for name, values in FACTS.items()}


def _tree(video_id: str, events: Sequence[Mapping[str, str]]) -> VideoTree:
    nodes: dict[str, Node] = {}
    for scene in range(SCENES):
        at = range(scene * EVENTS_A_SCENE, (scene + 1) * EVENTS_A_SCENE)
        text = " ".join(f"{_sentence(events[event])}." for event in at)
        _add(nodes, f"{video_id}_L1_{scene:03d}", SCENE, at, text, [f"{video_id}_L2_{event:03d}" for event in at])
    for number, event in enumerate(events):
        frames = [f"{video_id}_L3_{number * FRAMES_AN_EVENT + at:04d}" for at in range(FRAMES_AN_EVENT)]
        told = "" if number % UNTOLD == 0 else f" {event['why']}, {event['where']}"
        text = f"{_sentence(event)}{told}."
        _add(nodes, f"{video_id}_L2_{number:03d}", EVENT, range(number, number + 1), text, frames)
        details = (f"The {event['what']} is {event['colour']}.", f'A sign reads "{event["sign"]}".')
        for frame, detail in zip(frames, details, strict=True):
            _add(nodes, frame, FRAME, range(number, number + 1), detail, [])
    return VideoTree(video_id, "long", float(len(events) * EVENT_SECONDS), "Rehearsal", MappingProxyType(nodes))


def _add(nodes: dict[str, Node], node_id: str, level: int, events: range, text: str, children: Sequence[str]) -> None:
    start, end = float(events.start * EVENT_SECONDS), float(events.stop * EVENT_SECONDS)
    nodes[node_id] = Node(node_id, level, start, end, text, (), "", tuple(children))


def _sentence(event: Mapping[str, str]) -> str:
    return f"{event['who'].capitalize()} {event['does']} the {event['what']}"


def _question(draw: random.Random, question_id: str, events: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    task_type = draw.choices(list(ASKS), [weight for weight, _, _ in ASKS.values()])[0]
    _, fact, text = ASKS[task_type]
    place = draw.randrange(len(events))
    seconds = place * EVENT_SECONDS
    right, others = _answers(fact, place, events)
    options = draw.sample(others, 3)
    if draw.random() < 0.01:
        options[0] = options[1]
    at = draw.randrange(4)
    options.insert(at, right)
    stop = "" if draw.random() < 0.3 else "."
    return {
        "question_id": question_id,
        "task_type": task_type,
        "question": text.format(**events[place], time=f"{seconds // 60}:{seconds % 60:02d}"),
        "options": [
            f"{letter}. {option[0].upper()}{option[1:]}{stop}" for letter, option in zip("ABCD", options, strict=True)
        ],
        "answer": "ABCD"[at],
        "response": "",
    }


def _answers(fact: str, place: int, events: Sequence[Mapping[str, str]]) -> tuple[str, Sequence[str]]:
    """The right answer about an event, and every wrong one."""
    if fact == "count":
        scene = place // EVENTS_A_SCENE * EVENTS_A_SCENE
        count = sum(each["what"] == events[place]["what"] for each in events[scene : scene + EVENTS_A_SCENE])
        return str(count), [str(other) for other in range(1, 7) if other != count]
    right = events[place][fact]
    return right, [value for value in FACTS[fact] if value != right]


def main() -> int:
    """Writes the set and says where."""
    parser = argparse.ArgumentParser(description="Write a made-up question set in Video-MME's forms, with trees.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--videos", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.videos < 1:
        parser.error("--videos must be 1 or more")
    written = write_rehearsal(make_rehearsal(given.videos, given.seed), given.folder)
    sys.stdout.write("".join(f"{path}\n" for path in [*written, given.folder / "trees"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
