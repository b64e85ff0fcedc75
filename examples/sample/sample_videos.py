"""Invents one video: what happens in it, which questions it can carry, and the tree that describes it."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.video_tree import EVENT, FRAME, SCENE, Node, VideoTree, frame_name

SCENES = 4
UNIQUE_ACTIONS = 12
EASY_SHARES = {"time": 0.3, "why": 0.4, "colour": 0.25}
PICTURE_SHARE = 0.25
COLOURS = ("green", "red", "yellow", "white", "purple", "orange", "grey", "turquoise")
AMBIENT = (
    "The camera stays still.",
    "The light is soft.",
    "Voices can be heard from outside.",
    "Nobody else is in the picture.",
    "A radio plays quietly.",
    "The picture is slightly shaky.",
    "It takes only a short moment.",
    "The movement is calm and practised.",
)
VIEWS = (
    "A wide view from the entrance, with the whole room in the picture and a person in the middle of it, half turned "
    "away; shelves run along both walls, and a few other objects lie here and there without order",
    "A view over the shoulder, hands in the centre of the picture and the background out of focus behind them; the "
    "light comes from one side, so that half of what can be seen lies in the shade",
    "A low view from the floor, with legs and furniture at the sides of the picture and a wall behind everything; dust "
    "can be made out in the air, and the far corner of the room is too dark to tell anything",
)
BLANK_JPEG = (Path(__file__).resolve().parent / "blank.jpg").read_bytes()


@dataclass(frozen=True, slots=True)
class Story:
    """The vocabulary of one setting."""

    name: str
    person: str
    pronoun: str
    setting: str
    places: tuple[str, ...]
    actions: tuple[str, ...]
    repeated: tuple[str, ...]
    reasons: tuple[tuple[str, str, str], ...]
    things: tuple[str, ...]
    tools: tuple[str, ...]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Story:
        """The story of one TOML table."""
        lists = {key: tuple(value) for key, value in record.items() if isinstance(value, list) and key != "reasons"}
        texts = {key: value for key, value in record.items() if isinstance(value, str)}
        return cls(**texts, **lists, reasons=tuple((a, b, c) for a, b, c in record["reasons"]))


@dataclass(slots=True)
class Event:
    """Something the person does: where, with what, what lies about in which colour, and what else is told of it."""

    action: str
    place: str
    thing: str
    colour: str
    scene: int
    node_id: str = ""
    tool: str = ""
    hints: list[str] = field(default_factory=list)
    colour_told_by: str = "frame"


@dataclass(frozen=True, slots=True)
class Ask:
    """A question planned: its kind, the event it is about, and whether that event's own text tells the answer."""

    kind: str
    event: int
    easy: bool


@dataclass(frozen=True, slots=True)
class Video:
    """One invented video."""

    video_id: str
    story: Story
    events: tuple[Event, ...]
    asks: tuple[Ask, ...]
    told_reasons: tuple[str, ...]
    used_tools: tuple[str, ...]
    tree: VideoTree
    pictures: Mapping[str, bytes]

    def unique(self, index: int) -> bool:
        """Whether the action of an event happens once in the video."""
        return sum(event.action == self.events[index].action for event in self.events) == 1


def third_person(action: str) -> str:
    """`wash both hands` -> `washes both hands`."""
    verb, _, rest = action.partition(" ")
    if verb.endswith(("s", "x", "z", "ch", "sh")):
        verb += "es"
    elif verb.endswith("y") and verb[-2] not in "aeiou":
        verb = verb[:-1] + "ies"
    else:
        verb += "s"
    return f"{verb} {rest}"


def make_video(story: Story, video_id: str, seed: int) -> Video:
    """The video of that id; the same story, id and seed give the same video."""
    rng = random.Random(f"{seed}/{video_id}")  # noqa: S311 - invents stories, guards nothing
    reasons = rng.sample(story.reasons, 2)
    events = _events(story, rng, [reason[0] for reason in reasons])
    asks = [*_plan_times(events, rng), *_plan_reasons(events, reasons, rng), *_plan_colours(events, rng)]
    asks += _plan_rest(events, rng)
    used = rng.sample(story.tools, 5)
    for tool, index in zip(used, rng.sample(range(len(events)), len(used)), strict=True):
        events[index].tool = tool
    _tell(story, events, asks, reasons, rng)
    tree, pictures = _tree(story, video_id, events, rng)
    return Video(
        video_id, story, tuple(events), tuple(asks), tuple(reason[1] for reason in reasons), tuple(used), tree, pictures
    )


def _events(story: Story, rng: random.Random, wanted: Sequence[str]) -> list[Event]:
    others = [action for action in story.actions if action not in wanted]
    actions = [*wanted, *rng.sample(others, UNIQUE_ACTIONS - len(wanted))]
    rng.shuffle(actions)
    scenes: list[list[str]] = [actions[index::SCENES] for index in range(SCENES)]
    spread, gathered, _ = rng.sample(story.repeated, 3)
    for index in range(rng.choice((3, 4, 4, 5))):
        scenes[index % SCENES].insert(rng.randint(0, len(scenes[index % SCENES])), spread)
    home = scenes[rng.randrange(SCENES)]
    for _ in range(rng.choice((2, 2, 3))):
        home.insert(rng.randint(0, len(home)), gathered)
    events: list[Event] = []
    for number, scene in enumerate(scenes):
        places = rng.sample(story.places, 3)
        events += [
            Event(action, rng.choice(places), rng.choice(story.things), rng.choice(COLOURS), number) for action in scene
        ]
    return events


def _once(events: Sequence[Event], index: int) -> bool:
    return 0 <= index < len(events) and sum(event.action == events[index].action for event in events) == 1


def _easy(kind: str, rng: random.Random) -> bool:
    return rng.random() < EASY_SHARES[kind]


def _plan_times(events: Sequence[Event], rng: random.Random) -> list[Ask]:
    afters = [i for i in range(len(events)) if _once(events, i) and _once(events, i + 1)]
    befores = [i for i in range(len(events)) if _once(events, i) and _once(events, i - 1)]
    first = Ask("after", rng.choice(afters), _easy("time", rng))
    second_kind = "before" if rng.random() < 0.7 else "after"
    pool = [i for i in (befores if second_kind == "before" else afters) if i != first.event]
    return [first, Ask(second_kind, rng.choice(pool), _easy("time", rng))]


def _plan_reasons(events: Sequence[Event], reasons: Sequence[tuple[str, str, str]], rng: random.Random) -> list[Ask]:
    return [
        Ask("why", next(i for i, event in enumerate(events) if event.action == action), _easy("why", rng))
        for action, _, _ in reasons
    ]


def _plan_colours(events: Sequence[Event], rng: random.Random) -> list[Ask]:
    chosen = rng.sample([i for i in range(len(events)) if _once(events, i)], 2)
    asks = [Ask("colour", index, _easy("colour", rng)) for index in chosen]
    for ask in asks:
        if ask.easy:
            events[ask.event].colour_told_by = "event"
        elif rng.random() < PICTURE_SHARE:
            events[ask.event].colour_told_by = "picture"
    return asks


def _plan_rest(events: Sequence[Event], rng: random.Random) -> list[Ask]:
    counts = [event.action for event in events if sum(e.action == event.action for e in events) > 1]
    repeated = sorted(set(counts), key=counts.index)
    where = rng.sample([i for i in range(len(events)) if _once(events, i)], 2)
    return [
        *(Ask("count", next(i for i, e in enumerate(events) if e.action == action), False) for action in repeated),
        *(Ask("where", index, True) for index in where),
        Ask("uses", 0, False),
        Ask("uses_not", 0, False),
    ]


def _tell(
    story: Story, events: list[Event], asks: Sequence[Ask], reasons: Sequence[tuple[str, str, str]], rng: random.Random
) -> None:
    why = {action: (option, sentence) for action, option, sentence in reasons}
    for ask in asks:
        event = events[ask.event]
        if ask.kind == "after" and ask.easy:
            event.hints.append(f"Then {story.pronoun} {third_person(events[ask.event + 1].action)}.")
        elif ask.kind == "before" and ask.easy:
            event.hints.append(f"Just before, {story.pronoun} {third_person(events[ask.event - 1].action)}.")
        elif ask.kind == "why":
            option, sentence = why[event.action]
            if ask.easy:
                event.hints.append(f"The {story.person} does so {option}.")
            else:
                elsewhere = [other for other in events if other.scene != event.scene and not other.hints]
                rng.choice(elsewhere).hints.append(f"{sentence}.")


def _event_text(story: Story, event: Event, rng: random.Random) -> str:
    tool = f" with {event.tool}" if event.tool else ""
    parts = [f"The {story.person} {third_person(event.action)}{tool} {event.place}.", *event.hints]
    if event.colour_told_by == "event":
        parts.append(f"The {event.thing} is {event.colour}.")
    return " ".join([*parts, rng.choice(AMBIENT)])


def _frame_text(event: Event, shows_thing: bool, rng: random.Random) -> str:
    view = rng.choice(VIEWS)
    if not shows_thing:
        return f"{view}. {rng.choice(AMBIENT)}"
    if event.colour_told_by == "picture":
        return f"{view}. In the foreground lies the {event.thing}, in a strong colour."
    return f"{view}. In the foreground lies the {event.thing}: it is {event.colour}."


def _tree(
    story: Story, video_id: str, events: list[Event], rng: random.Random
) -> tuple[VideoTree, Mapping[str, bytes]]:
    nodes: dict[str, Node] = {}
    pictures: dict[str, bytes] = {}
    time = 0
    for number in range(SCENES):
        scene_id, start = f"{video_id}_s{number + 1}", time
        own = [event for event in events if event.scene == number]
        below: dict[str, Node] = {}
        for position, event in enumerate(own, start=1):
            event.node_id = f"{scene_id}_e{position}"
            length = rng.randint(5, 9)
            below |= _event_nodes(story, video_id, event, time, time + length, pictures, rng)
            time += length
        deed = third_person(rng.choice([event.action for event in own]))
        summary = f"In {story.setting}, the {story.person} {deed} and does {len(own) - 1} other things."
        children = tuple(event.node_id for event in own)
        nodes[scene_id] = Node(scene_id, SCENE, float(start), float(time), summary, (), "", children)
        nodes |= below
    return VideoTree(video_id, "short", float(time), story.name, nodes), pictures


def _event_nodes(
    story: Story, video_id: str, event: Event, start: int, end: int, pictures: dict[str, bytes], rng: random.Random
) -> dict[str, Node]:
    middle = (start + end) // 2
    shown_in = rng.randrange(2)
    frames: dict[str, Node] = {}
    for index, (begin, stop) in enumerate(((start, middle), (middle, end))):
        frame_id = f"{event.node_id}_f{index + 1}"
        text = _frame_text(event, index == shown_in, rng)
        frames[frame_id] = Node(frame_id, FRAME, float(begin), float(stop), text, (), "", ())
        if event.colour_told_by == "picture":
            seen = f"The {event.thing} is {event.colour}." if index == shown_in else "Hands at work."
            pictures[f"{frame_name(video_id, frame_id)}.jpg"] = with_comment(BLANK_JPEG, seen)
    text = _event_text(story, event, rng)
    return {event.node_id: Node(event.node_id, EVENT, float(start), float(end), text, (), "", tuple(frames)), **frames}


def with_comment(jpeg: bytes, text: str) -> bytes:
    """The JPEG with the text as its comment segment, placed right after the start marker."""
    comment = text.encode("utf-8")
    return jpeg[:2] + b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment + jpeg[2:]
