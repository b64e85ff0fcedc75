"""Where the agent looks next: an agenda of tool calls, each depending on what the earlier ones showed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from services.simulator.domain.conversation import Option
from services.simulator.domain.memory import Memory, Seen, attempt
from services.simulator.domain.reading import Reading
from services.simulator.domain.words import Lexicon, coverage, words

# What the agent's plan says when it shows a behaviour; a judge that reads the trace finds it there.
PLANS = {
    "look_after": "look after it.",
    "look_before": "look before it.",
    "count_children": "Count over the children of every scene.",
    "check_frames": "Look at the frame itself for the detail.",
    "search_options": "Search for each option in turn.",
    "compare_times": "Find when each option happens.",
    "open_scenes": "Open every scene before answering.",
    "weigh_mentions": "Search for each option and see what is mentioned again and again.",
}
MOST_SCENES = 6
MOST_FRAMES = 4
WIDE_SEARCH_HITS = 20


@dataclass(frozen=True, slots=True)
class Action:
    """One tool call and the thought that goes with it."""

    tool: str
    args: dict[str, Any]
    plan: str


@dataclass(frozen=True, slots=True)
class Situation:
    """All that the choice of the next action depends on."""

    reading: Reading
    options: tuple[Option, ...]
    memory: Memory
    behaviours: frozenset[str]
    tools: frozenset[str]
    catalogue: tuple[tuple[str, str], ...]
    lexicon: Lexicon


def next_action(situation: Situation) -> Action | None:
    """The first action of the agenda that was not tried yet; None when it is time to answer."""
    for action in _agenda(situation):
        usable = not situation.tools or action.tool in situation.tools
        if usable and attempt(action.tool, action.args) not in situation.memory.tried:
            return action
    return None


def looks_elsewhere(situation: Situation) -> str:
    """The side of the named event to which the behaviours send the agent: "after", "before" or empty."""
    direction = situation.reading.direction
    if not direction or not situation.behaviours & {f"look_{direction}", "wrong_way"}:
        return ""
    if "wrong_way" in situation.behaviours:
        return "before" if direction == "after" else "after"
    return direction


def neighbour(situation: Situation, side: str) -> Seen | None:
    """The known event next to the one the question names, on the given side; None while it is not known."""
    anchor = named_event(situation)
    if anchor is None:
        return None
    events = situation.memory.level(2)
    if side == "after":
        return next((event for event in events if event.start >= anchor.end - 1e-6), None)
    return next((event for event in reversed(events) if event.end <= anchor.start + 1e-6), None)


def named_event(situation: Situation) -> Seen | None:
    """The event that the question's time clause is about, once its scene has been opened."""
    hit = _best_hit(situation, situation.reading.anchor_text)
    return situation.memory.container(hit, 2) if hit else None


def _agenda(s: Situation) -> Iterator[Action]:
    if s.catalogue:
        yield Action("read_skill", {"name": _fitting_skill(s)}, "Read the skill that fits the question.")
    if "stop_early" in s.behaviours:
        return
    side = looks_elsewhere(s)
    if s.reading.counts and "count_children" in s.behaviours:
        yield from _open_scenes(s, PLANS["count_children"])
    elif side:
        yield from _go_beside(s, side)
        if "weigh_mentions" in s.behaviours:
            yield from _weigh_options(s)
    elif s.reading.order and "compare_times" in s.behaviours:
        yield from _search_options(s, PLANS["compare_times"])
    elif "weigh_mentions" in s.behaviours:
        yield from _go_to_best(s)
        yield from _weigh_options(s)
    elif "search_options" in s.behaviours or (s.reading.denies and "mind_negation" in s.behaviours):
        yield from _search_options(s, PLANS["search_options"])
    else:
        yield from _go_to_best(s)
        if "open_scenes" in s.behaviours:
            yield from _open_scenes(s, PLANS["open_scenes"])


def _fitting_skill(s: Situation) -> str:
    """The catalogue's skill whose description shares most words with the question, all words counted."""
    asked = set(words(s.reading.text))
    return max(s.catalogue, key=lambda entry: len(asked & set(words(entry[1]))))[0]


def _go_to_best(s: Situation) -> Iterator[Action]:
    yield _search(s, s.reading.text, "Search for the moment the question is about.")
    hit = _best_hit(s, s.reading.text)
    if hit is None:
        yield from _open_scenes(s, "The search found nothing; open the scenes.")
        return
    if s.reading.counts:
        scene = s.memory.container(hit, 1)
        yield _view(s, scene or hit, "Open the scene of the best hit and count there.")
        return
    yield _view(s, hit, "Open the best hit.")
    if "check_frames" in s.behaviours:
        yield from _look_at_frames(s, hit)


def _go_beside(s: Situation, side: str) -> Iterator[Action]:
    yield _search(s, s.reading.anchor_text, f"Find the named event first, then {PLANS[f'look_{side}']}")
    hit = _best_hit(s, s.reading.anchor_text)
    if hit is None:
        return
    scenes = s.memory.scenes()
    here = hit if hit.level == 1 else s.memory.container(hit, 1)
    if here is None:
        return
    yield _view(s, here, "Open the scene that holds the named event.")
    target = neighbour(s, side)
    if target is None:
        index = next(i for i, scene in enumerate(scenes) if scene.node_id == here.node_id)
        index += 1 if side == "after" else -1
        if 0 <= index < len(scenes):
            yield _view(s, scenes[index], f"The named event is at the edge of its scene; open the scene {side} it.")
            target = neighbour(s, side)
    if target is not None:
        yield _view(s, target, f"Open the event {side} the named one.")


def _look_at_frames(s: Situation, hit: Seen) -> Iterator[Action]:
    event = hit if hit.level in (0, 2) else s.memory.container(hit, 2) or hit
    yield _view(s, event, "Open the event to see its frames.")
    frames = [node for node in s.memory.level(3) if event.start <= node.middle < event.end]
    for frame in frames[:MOST_FRAMES]:
        yield _view(s, frame, PLANS["check_frames"])
        if coverage(s.reading.subject, s.lexicon.stems(frame.text)) > 0 and _an_option_shows(s, frame.text):
            return
    if frames and not any(_an_option_shows(s, frame.text) for frame in frames):
        yield Action(
            "observe_frame",
            {"node_ids": [frame.node_id for frame in frames[:MOST_FRAMES]], "question": s.reading.text},
            "The texts do not tell; look at the pictures.",
        )


def _an_option_shows(s: Situation, text: str) -> bool:
    stems = s.lexicon.stems(text)
    return any(coverage(s.lexicon.stems(option.text) - s.reading.subject, stems) >= 0.99 for option in s.options)


def _open_scenes(s: Situation, plan: str) -> Iterator[Action]:
    relevant = sorted(
        s.memory.scenes(), key=lambda scene: (-coverage(s.reading.subject, s.lexicon.stems(scene.text)), scene.start)
    )
    for scene in relevant[:MOST_SCENES]:
        yield _view(s, scene, plan)


def _search_options(s: Situation, plan: str) -> Iterator[Action]:
    for option in s.options:
        yield _search(s, option.text, plan)


def _weigh_options(s: Situation) -> Iterator[Action]:
    """A wide search for every option, then the best hit of each."""
    for option in s.options:
        yield _search(s, option.text, PLANS["weigh_mentions"], hits=WIDE_SEARCH_HITS)
    for option in s.options:
        hit = _best_hit(s, option.text)
        if hit is not None:
            yield _view(s, hit, "Open what the search for the option found first.")


def _best_hit(s: Situation, query: str) -> Seen | None:
    hits = [s.memory.nodes[node_id] for node_id in s.memory.hits.get(query, ())]
    return next((hit for hit in hits if hit.level != 1), hits[0] if hits else None)


def _search(s: Situation, query: str, plan: str, hits: int | None = None) -> Action:
    args = {"query": query, "question": s.reading.text}
    return Action("search_similar", args if hits is None else {**args, "k": hits}, plan)


def _view(s: Situation, node: Seen, plan: str) -> Action:
    return Action("view_node", {"node_id": node.node_id, "question": s.reading.text}, plan)
