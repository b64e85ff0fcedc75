"""`sim-judge`: reads skill, question and trace as a judge does, and names the true cause with a stated accuracy.

The truth it goes by is the world's: which behaviours a question needs, which advice asks for them, which misleads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.simulator.domain.advice import advised, advising_sentence, misleading, needed
from services.simulator.domain.conversation import tag
from services.simulator.domain.draws import Draws
from services.simulator.domain.memory import outline_nodes
from services.simulator.domain.reading import read_question
from services.simulator.domain.task import Task, cut_off, read_task
from services.simulator.domain.walk import PLANS
from services.simulator.domain.words import Lexicon, coverage
from services.simulator.domain.world import World

_VERDICTS = ("not_followed", "misleading", "silent", "sound")
_LETTER = re.compile(r"^\(?[A-Z][.)]\s*")
_CONDENSED = re.compile(r'<step n="(\d+)">\s*<source>(.*?)</source>\s*<output>(.*?)</output>', re.DOTALL)
_OUTPUT = re.compile(r"<output>(.*?)</output>", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n+|\s*\[\.\.\. cut \.\.\.\]\s*")
_TELLING = 0.8


def answer_as_judge(messages: Sequence[dict[str, Any]], seed: int | None, world: World, lexicon: Lexicon) -> str:
    """The JSON answer to a diagnosis prompt; a plain sentence to any other prompt."""
    task = read_task(messages)
    judge = _JUDGES.get(task.name)
    if judge is None:
        return "I judge only prompts whose <task> is one of " + ", ".join(_JUDGES) + "."
    draws = Draws(world.seed, "judge", seed, task.identity)
    answer = json.dumps(judge(task, world, lexicon, draws), ensure_ascii=False)
    return cut_off(answer) if draws.happens("malformed", world.judge.malformed_rate) else answer


def _judge_evidence(task: Task, world: World, lexicon: Lexicon, draws: Draws) -> dict[str, Any]:
    question, skill = tag("question", task.text), tag("skill", task.text)
    nodes = _telling_nodes(task, lexicon)
    directs = bool(nodes) and _covers(skill, question, world) == draws.happens("true", world.judge.accuracy)
    sentence = advising_sentence(skill, frozenset(needed(question, world.needs)), world.advice)
    return {
        "needed_nodes": nodes,
        "skill_directs_there": directs,
        "why": _why_evidence(task, nodes, lexicon),
        "reminder": _reminder(sentence) if directs else "",
    }


def _why_evidence(task: Task, nodes: list[str], lexicon: Lexicon) -> str:
    """What the telling node says, and whether it was opened."""
    if not nodes:
        return "No single node tells the answers apart."
    visited = [line.removeprefix("- ") for line in tag("visited", task.text).splitlines() if line.startswith("- ")]
    text = dict(outline_nodes(tag("tree", task.text)))[nodes[0]]
    wanted = _telling_stems(task, lexicon)
    sentence = max(_SENTENCE.split(text), key=lambda one: coverage(wanted, lexicon.stems(one)))
    went = f"was opened among {len(visited)}" if nodes[0] in visited else f"was not opened; opened: {_listed(visited)}"
    return f'{nodes[0]} says what tells the answers apart: "{sentence[:240]}" It {went}.'


def _listed(visited: list[str]) -> str:
    return ", ".join(visited[:6]) + (f" and {len(visited) - 6} more" if len(visited) > 6 else "") or "none"


def _telling_stems(task: Task, lexicon: Lexicon) -> frozenset[str]:
    """What only the right answer says: its stems without those of the answer given and of the question."""
    gold, given = (lexicon.stems(_LETTER.sub("", tag(name, task.text))) for name in ("gold_answer", "prediction"))
    return gold - given - lexicon.stems(tag("question", task.text))


def _telling_nodes(task: Task, lexicon: Lexicon) -> list[str]:
    """The node whose text says what only the right answer says, the one closest to the question; none if none does."""
    subject = lexicon.stems(tag("question", task.text))
    wanted = _telling_stems(task, lexicon)
    if not wanted:
        return []
    scored = [
        (coverage(subject, stems), len(stems), node_id)
        for node_id, text in outline_nodes(tag("tree", task.text))
        if coverage(wanted, stems := lexicon.stems(text)) >= _TELLING
    ]
    return [min(scored, key=lambda one: (-one[0], one[1], one[2]))[2]] if scored else []


def _covers(skill: str, question: str, world: World) -> bool:
    """Whether the skill asks for all that the question needs and for nothing that misleads."""
    found = advised(skill, world.advice)
    return set(needed(question, world.needs)) <= found and not found & misleading(world.advice)


def _judge_tool_output(task: Task, _world: World, lexicon: Lexicon, _draws: Draws) -> dict[str, Any]:
    gold = lexicon.stems(_LETTER.sub("", tag("gold_answer", task.text)))
    wanted = gold - lexicon.stems(_LETTER.sub("", tag("prediction", task.text)))
    steps: list[dict[str, Any]] = []
    for number, source, output in _CONDENSED.findall(tag("observations", task.text)):
        lost = (wanted & lexicon.stems(source)) - lexicon.stems(output)
        told = wanted and coverage(wanted, lexicon.stems(source)) >= _TELLING
        verdict = "incomplete" if told and lost else "faithful"
        detail = f"Left out: {', '.join(sorted(lost))}" if verdict == "incomplete" else ""
        steps.append({"step": int(number), "verdict": verdict, "detail": detail[:600]})
    cause = next((step["step"] for step in steps if step["verdict"] != "faithful"), None)
    why = "The outputs keep what matters." if cause is None else f"Step {cause} left out what decides the question."
    reminder = "" if cause is None else "Ask a long node again with the words of the options when its text stays vague."
    return {"steps": steps, "cause_step": cause, "why": why, "reminder": reminder}


def _judge_skill(task: Task, world: World, lexicon: Lexicon, draws: Draws) -> dict[str, Any]:
    skill, question = tag("skill", task.text), tag("question", task.text)
    verdict = _true_verdict(task, world, lexicon)
    if not draws.happens("true", world.judge.accuracy):
        verdict = draws.choice("other", [other for other in _VERDICTS if other != verdict])
    behaviours = misleading(world.advice) if verdict == "misleading" else frozenset(needed(question, world.needs))
    quote = advising_sentence(skill, behaviours, world.advice) or _first_instruction(skill)
    accuses = verdict in ("not_followed", "misleading") and bool(quote)
    if not accuses and verdict in ("not_followed", "misleading"):
        verdict = "silent"
    return {
        "verdict": verdict,
        "quote": quote[:600] if accuses else "",
        "why": _why_skill(task, verdict, lexicon),
        "reminder": _reminder(quote) if verdict == "not_followed" else "",
    }


def _true_verdict(task: Task, world: World, lexicon: Lexicon) -> str:
    skill, trace = tag("skill", task.text), tag("trace", task.text)
    wanted, found = needed(tag("question", task.text), world.needs), advised(skill, world.advice)
    if found & misleading(world.advice):
        return "misleading"
    if not set(wanted) <= found:
        return "silent" if _read_enough(task, world, lexicon) else "sound"
    shown = all(PLANS[name] in trace for name in wanted if name in PLANS)
    return "sound" if shown else "not_followed"


def _read_enough(task: Task, world: World, lexicon: Lexicon) -> bool:
    """Whether the trace holds enough of what only the right answer says for another way of weighing it to help."""
    if world.judge.traced_share == 0:
        return True
    return coverage(_telling_stems(task, lexicon), _read_stems(task, lexicon)) >= world.judge.traced_share


def _read_stems(task: Task, lexicon: Lexicon) -> frozenset[str]:
    return lexicon.stems("\n".join(_OUTPUT.findall(tag("trace", task.text))))


def _why_skill(task: Task, verdict: str, lexicon: Lexicon) -> str:
    wanted = _telling_stems(task, lexicon)
    telling = _spelled(task, "gold_answer", wanted, lexicon)
    read = _spelled(task, "gold_answer", wanted & _read_stems(task, lexicon), lexicon)
    facts = f"only the right answer says {telling}; of that the agent read {read}"
    return _WHY_SKILL[verdict].format(facts=facts)


def _spelled(task: Task, answer: str, stems: frozenset[str], lexicon: Lexicon) -> str:
    """The words of an answer that have these stems, as they are written there, in quotes; "nothing" for none."""
    text = _LETTER.sub("", tag(answer, task.text)).rstrip(".")
    found = [word for word in dict.fromkeys(text.split()) if lexicon.stems(word) & stems]
    return ", ".join(f'"{word}"' for word in found) or "nothing"


_WHY_SKILL: Mapping[str, str] = {
    "not_followed": "An instruction of the skill fits this question, and no step does what it says: {facts}.",
    "misleading": "The agent did what an instruction of the skill says and was led away: {facts}.",
    "silent": "No instruction of the skill addresses what was hard here, how to find and weigh it: {facts}.",
    "sound": "No other instruction would have helped: {facts}.",
}


def _first_instruction(skill: str) -> str:
    lines = (line.strip() for line in skill.splitlines())
    return next((line for line in lines if re.match(r"(?:[-*]|\d+\.)\s", line)), "")


def _judge_reasoning(task: Task, world: World, lexicon: Lexicon, draws: Draws) -> dict[str, Any]:
    kind = _true_mistake(task, world, lexicon)
    if not draws.happens("true", world.judge.accuracy):
        kind = draws.choice("other", [other for other in _REMINDERS if other != kind])
    read = _read_stems(task, lexicon)
    given, right = (
        _spelled(task, name, _own_stems(task, name, lexicon) & read, lexicon) for name in ("prediction", "gold_answer")
    )
    why = f"{_MISTAKES[kind]}: of the answer given it had read {given}, of the right one {right}."
    return {"type": kind, "why": why, "reminder": _REMINDERS[kind]}


def _true_mistake(task: Task, world: World, lexicon: Lexicon) -> str:
    """The kind of mistake, by the question; where too little was read of either answer, by what was read."""
    if not _read_enough(task, world, lexicon):
        given = _own_stems(task, "prediction", lexicon)
        supported = coverage(given, _read_stems(task, lexicon)) >= world.judge.traced_share
        return "none" if supported else "unsupported_leap"
    reading = read_question(tag("question", task.text), lexicon)
    if reading.denies:
        return "negation_missed"
    if reading.direction or reading.order:
        return "order_confused"
    return "count_wrong" if reading.counts else "options_confused"


def _own_stems(task: Task, name: str, lexicon: Lexicon) -> frozenset[str]:
    return lexicon.stems(_LETTER.sub("", tag(name, task.text))) - lexicon.stems(tag("question", task.text))


_MISTAKES: Mapping[str, str] = {
    "negation_missed": "It overlooked a denial",
    "order_confused": "It mixed up what comes first",
    "count_wrong": "It counted wrongly",
    "options_confused": "It did not tell close options apart",
    "evidence_contradicted": "Something it had read contradicts its answer",
    "unsupported_leap": "Too little that it had read supports its answer",
    "none": "Its reasoning holds, and what it read does not tell the right answer",
}
_REMINDERS: Mapping[str, str] = {
    "negation_missed": "Check what kind of answer is asked for before you submit.",
    "order_confused": "Compare the times of the nodes with the order the question asks about.",
    "count_wrong": "Count a second time before you submit a number.",
    "options_confused": "Compare the letter you submit with the text of the option you mean.",
    "evidence_contradicted": "Give up an option that a node contradicts.",
    "unsupported_leap": "Search in other words before you choose an option that nothing you read supports.",
    "none": "",
}


def _judge_score(task: Task, _world: World, lexicon: Lexicon, _draws: Draws) -> dict[str, Any]:
    evidence = lexicon.stems(tag("evidence", task.text))
    said = coverage(lexicon.stems(_LETTER.sub("", tag("prediction", task.text))), evidence)
    about = coverage(lexicon.stems(tag("question", task.text)), evidence)
    quality = round(said * (0.6 + 0.4 * about), 3)
    return {"quality": quality, "why": f"The evidence holds {said:.0%} of the words of the answer."}


def _reminder(sentence: str) -> str:
    text = re.sub(r"^(?:[-*]|\d+\.)\s+", "", sentence)
    return f"Do what the strategy says: {text}"[:300] if text else ""


_JUDGES: Mapping[str, Callable[[Task, World, Lexicon, Draws], dict[str, Any]]] = {
    "diagnose.evidence": _judge_evidence,
    "diagnose.tool_output": _judge_tool_output,
    "diagnose.skill": _judge_skill,
    "diagnose.reasoning": _judge_reasoning,
    "diagnose.score": _judge_score,
}
