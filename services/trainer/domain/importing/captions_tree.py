"""From a caption a second to a video tree: frames, events of about 5 s, scenes of about 30 s."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from services.questions import storable_text
from services.trainer.domain.importing.extract import Caption, difference, read_caption, summary, word_weights
from services.trainer.domain.importing.segments import PieceLength, cut
from services.video_tree import EVENT, FRAME, SCENE, Node, VideoTree

_EVENT_SECONDS = PieceLength(wanted=5, shortest=3, longest=9)
_SCENE_EVENTS = PieceLength(wanted=6, shortest=3, longest=9)
_EVENT_CHARS = 420
_SCENE_CHARS = 560
_LONGEST_SHORT_SECONDS = 120
_LONGEST_MEDIUM_SECONDS = 900


class CaptionFault(ValueError):
    """What is wrong with the captions of a video."""


@dataclass(frozen=True, slots=True)
class _Frame:
    second: int
    text: str
    caption: Caption


def parse_captions(content: bytes) -> dict[int, str]:
    """Second -> caption, in order of time, from an object `{"0": "...", "1": "..."}`. Raises CaptionFault."""
    try:
        found = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise CaptionFault(f"not valid JSON: {error}") from error
    if not isinstance(found, dict) or not found:
        raise CaptionFault("it must hold an object of captions by second")
    captions: dict[int, str] = {}
    for second, caption in found.items():
        if not second.isascii() or not second.isdecimal() or len(second) > 6:
            raise CaptionFault(f"{second[:40]!r} is no second")
        text = " ".join(storable_text(caption).split()) if isinstance(caption, str) else ""
        if not text:
            raise CaptionFault(f"the caption of second {second} is empty or not text")
        captions[int(second)] = text
    if len(captions) != len(found):
        raise CaptionFault("a second stands twice")
    return dict(sorted(captions.items()))


def captions_tree(video_id: str, captions: Mapping[int, str]) -> VideoTree:
    """The tree of a video; `captions` are by second, in order of time, at least one.

    One L3 node a caption. Boundaries of events and scenes lie where neighbours' words differ most, with lengths near
    5 s and 30 s. Texts of events and scenes are sentences of their captions.
    """
    frames = [_Frame(second, text, read_caption(text)) for second, text in captions.items()]
    weights = word_weights([frame.caption.words for frame in frames])
    events = _pieces([frame.caption.words for frame in frames], _EVENT_SECONDS)
    event_words = [frozenset[str]().union(*(frames[at].caption.words for at in range(*event))) for event in events]
    scenes = _pieces(event_words, _SCENE_EVENTS)
    nodes: dict[str, Node] = {}
    for number, (first, end) in enumerate(scenes):
        within = frames[events[first][0] : events[end - 1][1]]
        children = tuple(_id(video_id, EVENT, at) for at in range(first, end))
        node = _node(_id(video_id, SCENE, number), SCENE, within, children, weights, _SCENE_CHARS)
        nodes[node.node_id] = node
    for number, event in enumerate(events):
        within = frames[event[0] : event[1]]
        children = tuple(_id(video_id, FRAME, frame.second) for frame in within)
        node = _node(_id(video_id, EVENT, number), EVENT, within, children, weights, _EVENT_CHARS)
        nodes[node.node_id] = node
    for frame in frames:
        node = _frame_node(video_id, frame)
        nodes[node.node_id] = node
    duration = frames[-1].second + 1
    return VideoTree(video_id, _duration_category(duration), float(duration), "", MappingProxyType(nodes))


def _pieces(words: Sequence[frozenset[str]], length: PieceLength) -> list[tuple[int, int]]:
    differences = [difference(one, other) for one, other in pairwise(words)]
    return cut(differences, length)


def _node(
    node_id: str,
    level: int,
    frames: Sequence[_Frame],
    children: tuple[str, ...],
    weights: Mapping[str, float],
    most_chars: int,
) -> Node:
    text = summary([frame.caption for frame in frames], weights, most_chars)
    return Node(node_id, level, float(frames[0].second), float(frames[-1].second + 1), text, (), "", children)


def _frame_node(video_id: str, frame: _Frame) -> Node:
    node_id = _id(video_id, FRAME, frame.second)
    return Node(node_id, FRAME, float(frame.second), float(frame.second + 1), frame.text, (), "", ())


def _id(video_id: str, level: int, number: int) -> str:
    return f"{video_id}_L{level}_{number:03d}"


def _duration_category(seconds: int) -> str:
    """Video-MME's categories."""
    if seconds <= _LONGEST_SHORT_SECONDS:
        return "short"
    return "medium" if seconds <= _LONGEST_MEDIUM_SECONDS else "long"
