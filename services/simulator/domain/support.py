"""How well the text seen supports each option: word overlap, sentence by sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass

from services.simulator.domain.conversation import Option
from services.simulator.domain.walk import Situation, looks_elsewhere, neighbour
from services.simulator.domain.words import Lexicon, coverage, number_in

_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n+")
_COUNTING_WORDS = frozenset({"time", "often", "number", "count", "different", "separate", "times"})
OVERVIEW_WEIGHT = 0.5
MENTION_WEIGHT = 4.0
COUNT_MATCH = 0.75


@dataclass(frozen=True, slots=True)
class Unit:
    """One sentence seen: its stems, how much it is trusted, and the node it stands in."""

    stems: frozenset[str]
    weight: float
    node_id: str


@dataclass(frozen=True, slots=True)
class Support:
    """The support of one option (about 0..2, higher is better) and the node that gave most of it."""

    option: Option
    value: float
    node_id: str


def supports(s: Situation) -> list[Support]:
    """The support of every option, in the order of the options."""
    if s.reading.counts_events:
        counted = _counted(s)
        if counted is not None:
            return counted
    if s.reading.order and "compare_times" in s.behaviours:
        return _by_time(s)
    units = _units(s)
    found = [_best(option, units, s) for option in s.options]
    if "weigh_mentions" in s.behaviours:
        texts = _texts_below_scenes(s)
        found = [Support(one.option, one.value + _mentions(one.option, texts, s), one.node_id) for one in found]
    if s.reading.denies and "mind_negation" in s.behaviours:
        found = [Support(one.option, -one.value, one.node_id) for one in found]
    return found


def _wanted(option: Option, s: Situation) -> frozenset[str]:
    """What an option says beyond the question; all of it where that is nothing."""
    stems = s.lexicon.stems(option.text)
    return (stems - s.reading.subject) or stems


def _texts_below_scenes(s: Situation) -> list[frozenset[str]]:
    """The stems of every event and frame seen. A scene's text repeats its events' and would count them twice."""
    nodes = [node.text for node in s.memory.nodes.values() if node.level != 1]
    return [s.lexicon.stems(text) for text in (*nodes, *s.memory.frames)]


def _mentions(option: Option, texts: list[frozenset[str]], s: Situation) -> float:
    """How much of the option a text seen holds on average, those close to the question counting more."""
    wanted = _wanted(option, s)
    total = sum(coverage(wanted, stems) * (0.2 + coverage(s.reading.subject, stems)) for stems in texts)
    return MENTION_WEIGHT * total / len(texts) if texts else 0.0


def _best(option: Option, units: list[Unit], s: Situation) -> Support:
    wanted = _wanted(option, s)
    best, where = 0.0, ""
    for unit in units:
        covered = coverage(wanted, unit.stems)
        if covered:
            value = unit.weight * covered * (1.0 + coverage(s.reading.subject, unit.stems))
            if value > best:
                best, where = value, unit.node_id
    return Support(option, best, where)


def _units(s: Situation) -> list[Unit]:
    side = looks_elsewhere(s)
    beside = neighbour(s, side) if side else None
    if beside is not None and "weigh_mentions" not in s.behaviours:
        return _sentences(beside.text, 1.0, beside.node_id, s.lexicon)
    units: list[Unit] = []
    for node in s.memory.nodes.values():
        in_overview = node.level == 1 and not node.opened
        weight = OVERVIEW_WEIGHT if in_overview else 1.1 if node.opened else 1.0
        units += _sentences(node.text, weight, node.node_id, s.lexicon)
    for text in s.memory.frames:
        units += _sentences(text, 1.2, "", s.lexicon)
    return units


def _sentences(text: str, weight: float, node_id: str, lexicon: Lexicon) -> list[Unit]:
    return [Unit(lexicon.stems(part), weight, node_id) for part in _SENTENCE.split(text) if part.strip()]


def _counted(s: Situation) -> list[Support] | None:
    wanted = s.reading.subject - _COUNTING_WORDS
    matching = [e for e in s.memory.level(2) if coverage(wanted, s.lexicon.stems(e.text)) >= COUNT_MATCH]
    if not matching:
        return None
    found = [(option, number_in(option.text)) for option in s.options]
    return [
        Support(option, 0.0 if number is None else 2.0 / (1 + abs(number - len(matching))), matching[0].node_id)
        for option, number in found
    ]


def _by_time(s: Situation) -> list[Support]:
    found: list[Support] = []
    latest = max((node.end for node in s.memory.nodes.values()), default=1.0) or 1.0
    for option in s.options:
        wanted = s.lexicon.stems(option.text)
        hits = [s.memory.nodes[node_id] for node_id in s.memory.hits.get(option.text, ())]
        scored = [(coverage(wanted, s.lexicon.stems(hit.text)), hit) for hit in hits if hit.level != 1]
        if not scored:
            found.append(Support(option, 0.0, ""))
            continue
        share, hit = max(scored, key=lambda pair: (pair[0], -pair[1].start))
        when = hit.start / latest
        found.append(Support(option, share * (1.0 + (1.0 - when if s.reading.order == "first" else when)), hit.node_id))
    return found
