"""EVO-3 and EVO-4: the order of the waterfall, what stops it, and what a judge may claim."""

from typing import Any

import pytest

from services.evolver.domain.case import Case
from services.evolver.domain.diagnosis import Category, Cause, Diagnosis, Tier
from services.evolver.domain.errors import ModelUnavailable
from services.evolver.domain.stages import Bounds
from services.evolver.templates import engine_files, load_templates
from services.evolver.use_cases.ask_model import AskModel
from services.evolver.use_cases.diagnose_case import DiagnoseCase
from services.evolver.use_cases.ports import ModelRole, Origin, Reply
from tests.builders.cases import case, step, submit, view
from tests.fakes.evolver_fakes import ScriptedModel

TEMPLATES = load_templates(engine_files(None))
NO_EVIDENCE = {"needed_nodes": [], "skill_directs_there": False, "why": "no node tells", "reminder": ""}
SOUND = {"verdict": "sound", "quote": "", "why": "the skill fits", "reminder": ""}
REASONING = {"type": "unsupported_leap", "why": "it guessed", "reminder": "Name the node that supports the answer."}
FAITHFUL = {
    "steps": [{"step": 0, "verdict": "faithful", "detail": ""}], "cause_step": None, "why": "ok", "reminder": "",
}  # fmt: skip


def model(**changes: Any) -> ScriptedModel:
    scripts = {
        "diagnose__evidence": NO_EVIDENCE,
        "diagnose__tool_output": FAITHFUL,
        "diagnose__skill": SOUND,
        "diagnose__reasoning": REASONING,
    }
    return ScriptedModel(**{**scripts, **changes})


async def diagnose(judge: ScriptedModel, wrong: Case) -> Diagnosis:
    waterfall = DiagnoseCase(AskModel(judge, TEMPLATES, 4), Bounds())
    return await waterfall.diagnose(wrong, "print", Origin("w", "r"))


def tasks(judge: ScriptedModel) -> list[str]:
    return [task for task, _, _, _ in judge.calls]


WRONG = case(view(0, "e1"), submit(1))


async def test_evo_3_format_is_found_by_rule_without_a_judge() -> None:
    judge = model()
    found = await diagnose(judge, case(view(0, "e1"), submit(1), prediction="the onions"))
    assert (found.explanation.category, found.explanation.cause, found.tier) == (Category.FORMAT, Cause.LAPSE, Tier.T1)
    assert judge.calls == []


async def test_evo_3_a_wasted_budget_is_a_lapse_and_a_spent_one_a_defect() -> None:
    wasted = case(view(0, "e1"), view(1, "e1"), view(2, "e1"), stop_reason="budget_exceeded", prediction="")
    spent = case(view(0, "e1"), view(1, "e2"), view(2, "e3"), stop_reason="budget_exceeded", prediction="")
    assert (await diagnose(model(), wasted)).explanation.cause is Cause.LAPSE
    found = await diagnose(model(), spent)
    assert (found.explanation.category, found.explanation.cause, found.tier) == (Category.BUDGET, Cause.DEFECT, Tier.T2)


async def test_evo_3_an_answer_without_a_look_is_found_by_rule() -> None:
    judge = model()
    found = await diagnose(judge, case(submit(0)))
    assert found.explanation.category is Category.MISSED_NODES
    assert judge.calls == []


@pytest.mark.parametrize(("directs", "cause"), [(True, Cause.LAPSE), (False, Cause.DEFECT)])
async def test_evo_3_missed_nodes_stop_the_waterfall(directs: bool, cause: Cause) -> None:
    answer = {**NO_EVIDENCE, "needed_nodes": ["v_e2"], "skill_directs_there": directs, "reminder": "Open the event."}
    judge = model(diagnose__evidence=answer)
    found = await diagnose(judge, WRONG)
    assert (found.explanation.category, found.explanation.cause) == (Category.MISSED_NODES, cause)
    assert found.explanation.reminder == ("Open the event." if directs else "")
    assert found.evidence["evidence"]["missed_nodes"] == ["v_e2"]
    assert tasks(judge) == ["diagnose.evidence"]


async def test_evo_3_needed_nodes_that_were_seen_explain_nothing() -> None:
    opened = {**NO_EVIDENCE, "needed_nodes": ["v_e1"]}
    listed = {**NO_EVIDENCE, "needed_nodes": ["v_e2", "v_s2"]}
    shown = case(
        view(0, "s1", "<children>\n- v_e2 [15s-30s] The pot boils over because nobody watches it.\n"), submit(1)
    )
    for answer, wrong in ((opened, WRONG), (listed, shown)):
        found = await diagnose(model(diagnose__evidence=answer), wrong)
        assert found.explanation.category is Category.REASONING


async def test_evo_3_a_node_that_does_not_exist_is_sent_back() -> None:
    answers = [{**NO_EVIDENCE, "needed_nodes": ["v_e9"]}, {**NO_EVIDENCE, "needed_nodes": ["v_e2"]}]
    judge = model(diagnose__evidence=answers)
    found = await diagnose(judge, WRONG)
    assert found.explanation.category is Category.MISSED_NODES
    assert "there is no node 'v_e9' in the tree" in judge.calls[1][2][2]


@pytest.mark.parametrize(
    ("verdict", "category"),
    [("incomplete", Category.TOOL_INCOMPLETE), ("hallucinated", Category.TOOL_HALLUCINATED)],
)
async def test_evo_3_a_wrong_tool_output_stops_the_waterfall(verdict: str, category: Category) -> None:
    answer = {**FAITHFUL, "steps": [{"step": 0, "verdict": verdict, "detail": "the crying"}], "cause_step": 0}
    judge = model(diagnose__tool_output=answer)
    found = await diagnose(judge, WRONG)
    assert (found.explanation.category, found.explanation.cause) == (category, Cause.LAPSE)
    assert tasks(judge) == ["diagnose.evidence", "diagnose.tool_output"]
    assert dict(found.findings[-1].spans) == {0: {"verdict": verdict, "detail": "the crying"}}
    assert "<source>v_e1: The man cuts onions" in judge.prompts("diagnose.tool_output")[0]


async def test_evo_3_uncondensed_outputs_need_no_judge() -> None:
    judge = model()
    await diagnose(judge, case(view(0, "e1", "<node>The man cuts onions and starts to cry.</node>"), submit(1)))
    assert "diagnose.tool_output" not in tasks(judge)


@pytest.mark.parametrize(
    "answer",
    [
        {**FAITHFUL, "cause_step": 0},
        {**FAITHFUL, "steps": []},
        {**FAITHFUL, "steps": [*FAITHFUL["steps"], {"step": 7, "verdict": "incomplete", "detail": ""}]},
    ],
)
async def test_evo_3_a_verdict_on_steps_must_fit_the_steps(answer: dict[str, Any]) -> None:
    judge = model(diagnose__tool_output=[answer, FAITHFUL])
    assert (await diagnose(judge, WRONG)).explanation.category is Category.REASONING
    assert tasks(judge).count("diagnose.tool_output") == 2


@pytest.mark.parametrize(
    ("verdict", "quote", "category", "cause"),
    [
        ("not_followed", "Open the event before the action.", Category.SKILL_NOT_FOLLOWED, Cause.LAPSE),
        ("misleading", "Check the frames when the\nevent is short.", Category.SKILL_MISLEADING, Cause.DEFECT),
        ("silent", "", Category.SKILL_SILENT, Cause.DEFECT),
    ],
)
async def test_evo_3_the_skill_explains(verdict: str, quote: str, category: Category, cause: Cause) -> None:
    answer = {"verdict": verdict, "quote": quote, "why": "step 0", "reminder": "Open the event before."}
    found = await diagnose(model(diagnose__skill=answer), WRONG)
    assert (found.explanation.category, found.explanation.cause) == (category, cause)
    assert found.tier is (Tier.T2 if cause is Cause.DEFECT else Tier.T1)
    assert bool(found.explanation.reminder) == (cause is Cause.LAPSE)


@pytest.mark.parametrize("quote", ["", "Never look at frames."])
async def test_evo_3_an_accusation_must_quote_the_skill(quote: str) -> None:
    judge = model(diagnose__skill=[{"verdict": "misleading", "quote": quote, "why": "w", "reminder": ""}, SOUND])
    assert (await diagnose(judge, WRONG)).explanation.category is Category.REASONING


async def test_evo_3_reasoning_comes_last_and_has_a_type() -> None:
    judge = model()
    found = await diagnose(judge, WRONG)
    assert tasks(judge) == ["diagnose.evidence", "diagnose.tool_output", "diagnose.skill", "diagnose.reasoning"]
    assert [finding.stage for finding in found.findings] == [
        "format_or_budget", "nothing_visited", "evidence", "tool_output", "skill", "reasoning",
    ]  # fmt: skip
    assert found.evidence["reasoning"]["type"] == "unsupported_leap"
    assert (found.explanation.cause, found.degraded) == (Cause.LAPSE, False)
    assert {role for _, role, _, _ in judge.calls} == {ModelRole.JUDGE}


async def test_evo_4_a_judge_that_fails_degrades_the_case_to_a_lapse() -> None:
    found = await diagnose(model(diagnose__skill=ModelUnavailable("breaker open")), WRONG)
    assert (found.degraded, found.explanation.cause, found.tier) == (True, Cause.LAPSE, Tier.UNCERTAIN)
    assert "breaker open" in found.explanation.why
    assert found.explanation.reminder == ""


async def test_evo_4_a_judge_without_a_cause_degrades_the_case() -> None:
    answer = {**REASONING, "type": "none", "why": "No text speaks of the stool."}
    found = await diagnose(model(diagnose__reasoning=answer), WRONG)
    assert (found.degraded, found.explanation.category) == (True, Category.UNDETERMINED)
    assert found.explanation.why == (
        "no stage of the diagnosis explains the wrong answer; reasoning: No text speaks of the stool."
    )


async def test_evo_3_the_evidence_says_where_the_agent_looked() -> None:
    looked = (await diagnose(model(), WRONG)).evidence["nothing_visited"]
    assert [line.split(" [")[0] for line in looked["opened"]] == list(dict.fromkeys(WRONG.opened_nodes)) != []
    assert WRONG.tree is not None
    assert all(WRONG.tree.nodes[line.split(" [")[0]].text in line for line in looked["opened"])
    assert looked["searches"] == [step.args["query"] for step in WRONG.trace if step.tool == "search_similar"]


@pytest.mark.parametrize("bad", ["no json", Reply('{"verdict": "silent", ', "length"), {"verdict": "maybe"}])
async def test_evo_2_a_judge_that_answers_badly_twice_degrades_the_case(bad: Any) -> None:
    judge = model(diagnose__skill=bad)
    found = await diagnose(judge, WRONG)
    assert found.degraded
    assert tasks(judge).count("diagnose.skill") == 2
    assert tasks(judge)[-1] == "diagnose.skill"


async def test_evo_3_a_text_only_question_goes_straight_to_the_skill() -> None:
    judge = model()
    found = await diagnose(judge, case(step(0, "submit_answer", answer="A"), tree=None))
    assert tasks(judge) == ["diagnose.skill", "diagnose.reasoning"]
    assert found.explanation.category is Category.REASONING
