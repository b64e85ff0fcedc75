"""The questions one invented video carries; every answer follows from its tree."""

from __future__ import annotations

import random

from sample_videos import COLOURS, Ask, Video, third_person

from services.questions import OPTION_LETTERS, Question

TASK_TYPES = {
    "after": "Temporal Perception",
    "before": "Temporal Perception",
    "count": "Counting Problem",
    "colour": "Attribute Perception",
    "uses": "Object Recognition",
    "uses_not": "Object Recognition",
    "why": "Action Reasoning",
    "where": "Spatial Perception",
}
OPTIONS = 4


def questions_of(video: Video, seed: int) -> list[Question]:
    """All questions of the video, in the order in which they were planned."""
    rng = random.Random(f"{seed}/{video.video_id}/questions")  # noqa: S311 - shuffles options, guards nothing
    return [_question(video, number, ask, rng) for number, ask in enumerate(video.asks, start=1)]


def _question(video: Video, number: int, ask: Ask, rng: random.Random) -> Question:
    text, right, wrong = _parts(video, ask, rng)
    options = [right, *wrong]
    rng.shuffle(options)
    question_id = f"{video.video_id}-{number:02d}"
    answer = OPTION_LETTERS[options.index(right)]
    return Question(question_id, video.video_id, TASK_TYPES[ask.kind], text, tuple(options), answer, question_id)


def _parts(video: Video, ask: Ask, rng: random.Random) -> tuple[str, str, list[str]]:
    event, story = video.events[ask.event], video.story
    who = f"the {story.person}"
    if ask.kind in ("after", "before"):
        text = f"What does {who} do right {ask.kind} {story.pronoun} {third_person(event.action)}?"
        return text, *_time_options(video, ask, rng)
    if ask.kind == "count":
        times = sum(other.action == event.action for other in video.events)
        return f"How many times does {who} {event.action}?", str(times), _numbers(video, ask, times, rng)
    if ask.kind == "colour":
        wrong = rng.sample([colour for colour in COLOURS if colour != event.colour], OPTIONS - 1)
        text = f"What colour is the {event.thing} while {who} {third_person(event.action)}?"
        return text, event.colour.capitalize(), [colour.capitalize() for colour in wrong]
    if ask.kind == "why":
        right = next(option for action, option, _ in story.reasons if action == event.action)
        wrong = [option for _, option, _ in story.reasons if option not in video.told_reasons]
        return (
            f"Why does {who} {event.action}?",
            _sentence(right),
            [_sentence(w) for w in rng.sample(wrong, OPTIONS - 1)],
        )
    if ask.kind == "where":
        wrong = rng.sample([place for place in story.places if place != event.place], OPTIONS - 1)
        return f"Where does {who} {event.action}?", _sentence(event.place), [_sentence(place) for place in wrong]
    return _tool_parts(video, ask, rng)


def _tool_parts(video: Video, ask: Ask, rng: random.Random) -> tuple[str, str, list[str]]:
    used, unused = video.used_tools, [tool for tool in video.story.tools if tool not in video.used_tools]
    who = f"the {video.story.person}"
    if ask.kind == "uses":
        right, wrong = rng.choice(used), rng.sample(unused, OPTIONS - 1)
        return f"Which of these does {who} use?", _sentence(right), [_sentence(tool) for tool in wrong]
    right, wrong = rng.choice(unused), rng.sample(used, OPTIONS - 1)
    return f"Which of these does {who} not use?", _sentence(right), [_sentence(tool) for tool in wrong]


def _time_options(video: Video, ask: Ask, rng: random.Random) -> tuple[str, list[str]]:
    step = 1 if ask.kind == "after" else -1
    right = video.events[ask.event + step].action
    present = {event.action for event in video.events}
    if ask.easy:
        wrong = rng.sample([action for action in video.story.actions if action not in present], OPTIONS - 1)
    else:
        other_side = ask.event - step
        near = [video.events[other_side].action] if 0 <= other_side < len(video.events) else []
        taken = {right, video.events[ask.event].action, *near}
        rest = [action for action in video.story.actions if action in present and action not in taken]
        wrong = [*near, *rng.sample(rest, OPTIONS - 1 - len(near))]
    return _sentence(third_person(right)), [_sentence(third_person(action)) for action in wrong]


def _numbers(video: Video, ask: Ask, times: int, rng: random.Random) -> list[str]:
    """Wrong numbers near the right one, the count of a single scene among them where that is another number."""
    action = video.events[ask.event].action
    counts = [
        sum(e.action == action and e.scene == scene for e in video.events) for scene in {e.scene for e in video.events}
    ]
    partial = sorted({count for count in counts if 0 < count != times})
    near = [number for number in (times + 1, times - 1, times + 2, times - 2, times + 3) if number > 0]
    chosen: list[int] = []
    for number in [*partial, *near]:
        if number != times and number not in chosen and len(chosen) < OPTIONS - 1:
            chosen.append(number)
    return [str(number) for number in chosen]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
