"""`sim-evolve`: proposes edits out of the world's stock, in a stated mixture of helpful, neutral and harmful ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.simulator.domain.advice import advised, advising_sentence, misleading
from services.simulator.domain.conversation import tag
from services.simulator.domain.draws import Draws
from services.simulator.domain.failures import Failure, answered_by, pattern_of, read_failures
from services.simulator.domain.skill_places import free_body, list_items
from services.simulator.domain.task import Task, cut_off, read_task
from services.simulator.domain.words import Lexicon
from services.simulator.domain.world import PROMPT_TYPE, Proposal, World
from services.skills import section_spans

_NUMBERED = re.compile(r'<edit n="(\d+)">(.*?)</edit>', re.DOTALL)
_SECOND_EDIT = 0.25
_MOST_CASES = 3
_BAD_FORMS = ("unknown_target", "marker", "cut_off", "no_cases", "unknown_operation")
_QUALITY_ORDER = {"helpful": 0, "neutral": 1, "harmful": 2}


def answer_as_evolve(messages: Sequence[dict[str, Any]], seed: int | None, world: World, lexicon: Lexicon) -> str:
    """The JSON answer to a prompt of evolution or slow update; a plain sentence to any other prompt."""
    task = read_task(messages)
    writer = _WRITERS.get(task.name)
    if writer is None:
        return "I answer only prompts whose <task> is one of " + ", ".join(_WRITERS) + "."
    draws = Draws(world.seed, "evolve", seed, task.identity)
    answer = writer(task, world, lexicon, draws)
    form = draws.choice("form", _BAD_FORMS) if draws.happens("bad", world.evolve.badly_formed_rate) else ""
    text = json.dumps(_deformed(answer, form), ensure_ascii=False)
    return cut_off(text) if form == "cut_off" else text


def _deformed(answer: dict[str, Any], form: str) -> dict[str, Any]:
    edits = answer.get("edits")
    if not form or not edits:
        return answer
    first = dict(edits[0])
    if form == "unknown_target":
        first |= {"op": "replace", "target": "A line that this skill does not hold."}
    elif form == "marker":
        first["content"] = f"{first['content']}\n<!-- MOMENTUM_START -->"
    elif form == "no_cases":
        first.pop("cases")
    elif form == "unknown_operation":
        first["op"] = "insert_before"
    return {**answer, "edits": [first, *edits[1:]]}


def _write_edits(task: Task, world: World, lexicon: Lexicon, draws: Draws) -> dict[str, Any]:
    skill, failures = tag("skill", task.text), read_failures(tag("failures", task.text))
    wanted = _proposals(task, skill, world, draws) if failures else []
    budget = _number(tag("budget", task.text), 1)
    edits = [_edit(skill, one, failures, lexicon, draws, index) for index, one in enumerate(wanted[:budget])]
    misled = _line_with(skill, advising_sentence(skill, misleading(world.advice), world.advice))
    if misled and failures and draws.happens("mend", world.evolve.mixture.get("helpful", 0.0)):
        edits = [_record("delete", misled, "", "This instruction leads astray.", failures)]
    return {"suggestions": [], "edits": edits}


def _proposals(task: Task, skill: str, world: World, draws: Draws) -> list[Proposal]:
    """The advice to write: the first by the world's mixture, now and then a neutral sentence besides."""
    found: list[Proposal] = []
    wanted = [draws.weighted("quality", world.evolve.mixture)]
    if draws.happens("second", _SECOND_EDIT):
        wanted.append("neutral")
    for index, quality in enumerate(wanted):
        stock = [one for one in _stock(task, skill, world, quality) if one not in found]
        if stock:
            found.append(draws.choice(f"text/{index}", stock))
    return found


def _stock(task: Task, skill: str, world: World, quality: str) -> list[Proposal]:
    """The proposals of one quality that suit the type and a diagnosis, say something new, and were not refused."""
    task_type = tag("task_type", task.text).strip() or PROMPT_TYPE
    refused = tag("rejected", task.text)
    known = advised(skill, world.advice)
    failures = read_failures(tag("failures", task.text))

    def is_new(proposal: Proposal) -> bool:
        adds = advised(proposal.text, world.advice)
        return proposal.text not in skill and proposal.text not in refused and (not adds or not adds <= known)

    suiting = [one for one in world.evolve.proposals if not one.task_types or task_type in one.task_types]
    fitting = [one for one in suiting if not failures or answered_by(one.answers, failures)]
    return [one for one in fitting if one.quality == quality and is_new(one)]


def _edit(
    skill: str, proposal: Proposal, failures: Sequence[Failure], lexicon: Lexicon, draws: Draws, index: int
) -> dict[str, Any]:
    text, why, answered = proposal.text, _rationale(proposal, failures), answered_by(proposal.answers, failures)
    items = list_items(skill)
    bullets = [line for line in items if line.startswith("- ")]
    way = draws.weighted(f"way/{index}", {"insert_after": 0.6, "replace": 0.25, "append": 0.15})
    if way == "insert_after" and bullets:
        return _record("insert_after", bullets[-1], f"- {text}", why, answered)
    if way == "replace" and items:
        line = _closest(draws.shuffled(f"line/{index}", items), text, lexicon)
        return _record("replace", line, f"{line} {text}", why, answered)
    return _record("append", "", f"- {text}", why, answered)


def _closest(lines: Sequence[str], text: str, lexicon: Lexicon) -> str:
    """The line that shares most words with the text, so that what is said of one thing stands together."""
    wanted = lexicon.stems(text)
    return max(lines, key=lambda line: len(wanted & lexicon.stems(line)))


def _rationale(proposal: Proposal, failures: Sequence[Failure]) -> str:
    """The pattern, counted over the failures shown, and what will be done otherwise."""
    if not proposal.answers:
        return f"Several failures have this in common. {proposal.why}".strip()
    answered = answered_by(proposal.answers, failures)
    return f"{pattern_of(answered, len(failures))} {proposal.why}".strip()


def _record(op: str, target: str, content: str, rationale: str, failures: Sequence[Failure]) -> dict[str, Any]:
    cases = [failure.question_id for failure in failures[:_MOST_CASES]]
    return {"op": op, "target": target, "content": content, "rationale": rationale, "cases": cases}


def _line_with(skill: str, sentence: str) -> str:
    """The list item of the skill that holds the sentence and nothing else; empty where there is none."""
    return next(
        (line for line in list_items(skill) if sentence and line.lstrip("-* ").strip() == sentence.lstrip("-* ")), ""
    )


def _number(text: str, default: int) -> int:
    found = re.search(r"\d+", text)
    return int(found[0]) if found else default


def _rewrite(task: Task, world: World, _lexicon: Lexicon, draws: Draws) -> dict[str, Any]:
    skill, failures = tag("skill", task.text), read_failures(tag("failures", task.text))
    wanted = _proposals(task, skill, world, draws) if failures else []
    body = free_body(skill).strip()
    added = "\n".join(f"- {one.text}" for one in wanted)
    answered = answered_by(wanted[0].answers, failures) if wanted else ()
    return {
        "suggestions": [],
        "body": f"{body}\n{added}\n" if wanted else "",
        "rationale": _rationale(wanted[0], failures) if wanted else "Nothing is likely to help.",
        "cases": [failure.question_id for failure in answered[:_MOST_CASES]] or ["none"],
    }


def _write_system_edits(task: Task, world: World, _lexicon: Lexicon, draws: Draws) -> dict[str, Any]:
    """One sentence more in the system prompt, by the world's mixture: the agent follows it as it follows a skill."""
    return _prompt_edits(task, world, draws, draws.weighted("quality", world.evolve.mixture))


def _write_tool_edits(task: Task, world: World, _lexicon: Lexicon, draws: Draws) -> dict[str, Any]:
    """One neutral sentence more: the simulated tools do what they do, whatever their prompt advises."""
    return _prompt_edits(task, world, draws, "neutral")


def _prompt_edits(task: Task, world: World, draws: Draws, quality: str) -> dict[str, Any]:
    prompt, failures = tag("prompt", task.text), read_failures(tag("failures", task.text))
    headings = tuple(tag("frozen", task.text).splitlines())
    frozen = "\n".join(span.of(prompt) for _, span in section_spans(prompt, headings))
    items, stock = list_items(prompt, frozen), _stock(task, prompt, world, quality)
    if not (items and failures and stock):
        return {"suggestions": [], "edits": []}
    line, text = items[-1], draws.choice("text/0", stock).text
    edit = _record("replace", line, f"{line} {text}", "It concerns all types.", failures)
    return {"suggestions": [], "edits": [edit]}


def _rank(task: Task, world: World, _lexicon: Lexicon, draws: Draws) -> dict[str, Any]:
    """Helpful edits first, harmful ones last, each told by the stock's texts; equals in a drawn order."""
    parts = {int(number): text for number, text in _NUMBERED.findall(tag("edits", task.text))}

    def quality(number: int) -> int:
        known = [_QUALITY_ORDER[one.quality] for one in world.evolve.proposals if one.text in parts[number]]
        return min(known, default=1)

    numbers = draws.shuffled("order", sorted(parts))
    return {"order": sorted(numbers, key=quality)}


def _consolidate(task: Task, _world: World, lexicon: Lexicon, _draws: Draws) -> dict[str, Any]:
    """The reminders without those that share more than half of their words with an earlier one, cut to the limit."""
    lines = [re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "", line).strip() for line in tag("reminders", task.text).splitlines()]
    kept: list[str] = []
    for line in filter(None, lines):
        stems = lexicon.stems(line)
        if all(len(stems & (other := lexicon.stems(one))) <= 0.5 * len(stems | other) for one in kept):
            kept.append(line[:300])
    return {"reminders": kept[: max(1, _number(tag("limit", task.text), len(kept)))]}


def _momentum(task: Task, world: World, _lexicon: Lexicon, draws: Draws) -> dict[str, Any]:
    """Up to two sentences of the stock, in the world's mixture; none where no question stayed wrong or got worse."""
    if not _holds_cases(tag("persistent", task.text)) and not _holds_cases(tag("regressed", task.text)):
        return {"momentum": []}
    room = _number(tag("max_chars", task.text), 2000)
    lines: list[str] = []
    for text in [one.text for one in _proposals(task, tag("skill", task.text), world, draws)]:
        if len(text) <= min(400, room):
            lines.append(text)
            room -= len(text) + 3
    return {"momentum": lines}


def _holds_cases(text: str) -> bool:
    return len(text.strip().strip("()")) > len("none")


_WRITERS: Mapping[str, Callable[[Task, World, Lexicon, Draws], dict[str, Any]]] = {
    "evolve.skill": _write_edits,
    "evolve.rewrite": _rewrite,
    "evolve.system": _write_system_edits,
    "evolve.tool": _write_tool_edits,
    "evolve.rank": _rank,
    "evolve.consolidate": _consolidate,
    "slow.momentum": _momentum,
}
