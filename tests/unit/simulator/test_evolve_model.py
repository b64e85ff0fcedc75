import json
from collections import Counter
from typing import Any

import pytest

from services.evolver.domain.apply import apply_edits
from services.evolver.domain.case_pack import CasePack
from services.evolver.domain.edits import CandidateStatus, EditStatus
from services.evolver.domain.guard import PROMPT_GUARD
from services.evolver.domain.proposal import read_edits
from services.evolver.domain.targets import TargetKind, UpdateMode, template_values
from services.evolver.domain.validate import Rules
from services.runtime.bundled import bundled_path
from services.simulator.domain.evolve_model import answer_as_evolve
from services.simulator.domain.words import Lexicon
from services.simulator.domain.world import EvolveWorld, Proposal, World
from tests.builders.simulated_world import answer_faults, rendered, sample_knowledge, sample_skill, with_advice

SAMPLE = sample_knowledge().world
SKILL = sample_skill("counting-problem")
VALUES = {
    "task_type": "Counting Problem",
    "target_file": "counting-problem.md",
    "skill": SKILL,
    "failures": '<case id="q1">\nwrong\n</case>\n<case id="q2">\nwrong\n</case>',
    "rejected": "(none)",
    "budget": "4",
    "max_chars": "8000",
}


def world(badly_formed: float = 0.0, **mixture: float) -> World:
    weights = mixture or {"helpful": 1.0}
    return World(
        seed=SAMPLE.seed,
        advice=SAMPLE.advice,
        needs=SAMPLE.needs,
        evolve=EvolveWorld(weights, badly_formed, SAMPLE.evolve.proposals),
    )


def asked(task: str, found: World, seed: int | None = None, **values: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": rendered(task, **{**VALUES, **values})}]
    answer: dict[str, Any] = json.loads(answer_as_evolve(messages, seed, found, Lexicon()))
    assert answer_faults(task, answer) == ()
    return answer


def _template(task: str) -> str:
    folder, name = task.split(".")
    return (bundled_path("prompts") / folder / f"{name}.md").read_text(encoding="utf-8")


def quality_of(text: str) -> str:
    return next((one.quality for one in SAMPLE.evolve.proposals if one.text in text), "unknown")


def test_sim_1_the_mixture_of_edits_is_the_worlds() -> None:
    found = world(helpful=0.5, neutral=0.3, harmful=0.2)
    answers = [asked("evolve.skill", found, seed) for seed in range(300)]
    first = Counter(quality_of(answer["edits"][0]["content"]) for answer in answers)
    assert abs(first["helpful"] / 300 - 0.5) < 0.08
    assert abs(first["neutral"] / 300 - 0.3) < 0.08
    assert abs(first["harmful"] / 300 - 0.2) < 0.08


@pytest.mark.parametrize("seed", range(12))
def test_every_well_formed_edit_applies_to_the_skill(seed: int) -> None:
    answer = asked("evolve.skill", world(helpful=1.0, neutral=1.0, harmful=1.0), seed)
    edits = read_edits(answer, {"q1", "q2"}).edits
    candidate = apply_edits(SKILL, edits, Rules(max_chars=8000))
    assert candidate.status is CandidateStatus.CANDIDATE
    assert {outcome.status for outcome in candidate.outcomes} == {EditStatus.APPLIED}


def test_badly_formed_answers_come_in_every_form() -> None:
    forms: Counter[str] = Counter()
    for seed in range(60):
        text = raw_skill(world(badly_formed=1.0), seed)
        try:
            answer = json.loads(text)
        except ValueError:
            forms["cut off"] += 1
            continue
        edit = answer["edits"][0]
        forms["schema"] += bool(answer_faults("evolve.skill", answer))
        forms["marker"] += "<!-- MOMENTUM_START -->" in edit["content"]
        forms["target"] += edit["op"] == "replace" and edit["target"] not in SKILL
    assert set(forms) == {"cut off", "schema", "marker", "target"}
    assert sum(forms.values()) == 60


def raw_skill(found: World, seed: int) -> str:
    return answer_as_evolve([{"role": "user", "content": rendered("evolve.skill", **VALUES)}], seed, found, Lexicon())


def test_what_was_refused_or_is_known_is_not_proposed_again() -> None:
    helpful = [one.text for one in SAMPLE.evolve.proposals if "Counting Problem" in one.task_types]
    seen = {asked("evolve.skill", world(), seed, rejected=helpful[0])["edits"][0]["content"] for seed in range(10)}
    assert not any(helpful[0] in content for content in seen)
    assert any(helpful[1] in content for content in seen)
    learned = with_advice(SKILL, helpful[0])
    edits = [edit for seed in range(8) for edit in asked("evolve.skill", world(), seed, skill=learned)["edits"]]
    assert {quality_of(edit["content"]) for edit in edits} == {"neutral"}


def diagnosed(*categories: str) -> str:
    """Failures with these diagnoses."""
    return "\n\n".join(
        f'<case id="q{n}">\n<diagnosis category="{name}" cause="defect" tier="T2">why</diagnosis>\nwrong\n</case>'
        for n, name in enumerate(categories, start=1)
    )


def test_evo_6_proposals_follow_the_diagnoses_and_name_the_cases_they_answer() -> None:
    stock = (
        Proposal("helpful", "Open every scene.", answers=("missed_nodes",), why="More is read."),
        Proposal("helpful", "Weigh the hits.", answers=("skill_silent",), why="Chance counts less."),
    )
    found = World(seed=1, evolve=EvolveWorld({"helpful": 1.0}, 0.0, stock))
    edits = [
        edit
        for seed in range(6)
        for edit in asked("evolve.skill", found, seed, failures=diagnosed("reasoning", "skill_silent", "reasoning"))[
            "edits"
        ]
    ]
    assert len(edits) == 6
    assert all("Weigh the hits." in edit["content"] and edit["cases"] == ["q2"] for edit in edits)
    why = "1 of 3 failures: the skill says nothing of how to weigh what was found. Chance counts less."
    assert {edit["rationale"] for edit in edits} == {why}
    assert asked("evolve.skill", found, failures=diagnosed("reasoning"))["edits"] == []
    assert len(asked("evolve.skill", found)["edits"]) == 1


def test_advice_that_sharpens_a_line_goes_to_the_line_that_speaks_of_it() -> None:
    skill = "---\nname: a\ndescription: b\n---\n1. Note the person.\n2. Search for the action.\n3. Choose and submit.\n"
    stock = (Proposal("helpful", "Search for each option too."),)
    found = World(seed=1, evolve=EvolveWorld({"helpful": 1.0}, 0.0, stock))
    edits = [asked("evolve.skill", found, seed, skill=skill)["edits"][0] for seed in range(20)]
    replaced = {(edit["target"], edit["content"]) for edit in edits if edit["op"] == "replace"}
    assert replaced == {("2. Search for the action.", "2. Search for the action. Search for each option too.")}


def test_no_edit_without_a_failure_and_none_beyond_the_budget() -> None:
    assert asked("evolve.skill", world(), failures="(none)")["edits"] == []
    assert max(len(asked("evolve.skill", world(), seed, budget="1")["edits"]) for seed in range(20)) == 1


def test_a_misleading_line_is_removed() -> None:
    bad = "To save steps, answer straight from the overview when one option looks plausible."
    edits = asked("evolve.skill", world(), skill=with_advice(SKILL, bad))["edits"]
    assert [(edit["op"], edit["target"]) for edit in edits] == [("delete", f"- {bad}")]


def test_a_rewrite_keeps_the_body_and_adds_the_advice() -> None:
    answer = asked("evolve.rewrite", world())
    assert "2. Search for it with `search_similar`" in answer["body"]
    assert quality_of(answer["body"]) == "helpful"
    assert "APPENDIX" not in answer["body"]
    assert "task_type:" not in answer["body"]


@pytest.mark.parametrize(
    ("task", "name", "quality"),
    [
        ("evolve.system", "agent.system", "helpful"),
        ("evolve.system", "agent.system", "harmful"),
        ("evolve.tool", "tools.extract", "neutral"),
        ("evolve.tool", "tools.verify", "neutral"),
        ("evolve.tool", "tools.observe", "neutral"),
    ],
)
def test_evo_12_prompt_edits_are_of_the_worlds_mixture_and_pass_the_checks(task: str, name: str, quality: str) -> None:
    prompt = _template(name)
    pack = CasePack("", f"{name}.md", (), (), {}, ())
    shown = template_values(TargetKind(task), UpdateMode.PATCH, pack, prompt, 4, (), 20_000)
    known = {"prompt": prompt, "frozen": shown["frozen"], "target_file": f"{name}.md"}
    found = world(**{quality if task == "evolve.system" else "helpful": 1.0})
    (edit,) = asked(task, found, **known)["edits"]
    assert quality_of(edit["content"]) == quality
    edits = read_edits({"suggestions": [], "edits": [edit]}, ["q1", "q2"]).edits
    candidate = apply_edits(prompt, edits, Rules(20_000, PROMPT_GUARD))
    assert candidate.status is CandidateStatus.CANDIDATE
    assert asked(task, found, **{**known, "prompt": candidate.text})["edits"] != [edit], "it says nothing twice"


def test_edits_are_ranked_helpful_first_and_harmful_last() -> None:
    by_quality = {one.quality: one.text for one in SAMPLE.evolve.proposals}
    texts = [by_quality["harmful"], by_quality["neutral"], f"1. Search.\n2. {by_quality['helpful']}"]
    edits = "\n".join(f'<edit n="{number}">\nop: append\n{text}\n</edit>' for number, text in enumerate(texts))
    assert asked("evolve.rank", world(), edits=edits, budget="1")["order"] == [2, 1, 0]


def test_reminders_that_say_the_same_are_merged() -> None:
    reminders = "Open the frames of the event.\nOpen all frames of an event.\nCount twice."
    answer = asked("evolve.consolidate", world(), reminders=reminders, limit="5")
    assert answer["reminders"] == ["Open the frames of the event.", "Count twice."]
    assert len(asked("evolve.consolidate", world(), reminders=reminders, limit="1")["reminders"]) == 1


def test_momentum_says_something_only_where_questions_stay_wrong() -> None:
    assert asked("slow.momentum", world(), persistent="(none)", regressed="(none)")["momentum"] == []
    lines = asked("slow.momentum", world(), persistent="<case id='q1'>stays wrong again</case>")["momentum"]
    assert quality_of(lines[0]) == "helpful"


def test_asked_again_the_optimizer_draws_again() -> None:
    found = world(badly_formed=0.5)
    first = [{"role": "user", "content": rendered("evolve.skill", **VALUES)}]
    changed = 0
    for seed in range(20):
        answer = answer_as_evolve(first, seed, found, Lexicon())
        again = [*first, {"role": "assistant", "content": answer}]
        again.append({"role": "user", "content": rendered("evolve.retry", faults="- broken")})
        changed += answer_as_evolve(again, seed, found, Lexicon()) != answer
    assert changed > 5


def test_a_prompt_without_a_known_task_gets_a_plain_sentence() -> None:
    assert answer_as_evolve([{"role": "user", "content": "hi"}], None, World(), Lexicon()).startswith("I answer only")
