"""EVO-2, EVO-6, EVO-7, EVO-11, EVO-12: proposing."""

from dataclasses import replace
from typing import Any

import pytest

from services.evolver.domain.case_pack import CasePack, PackedCase
from services.evolver.domain.diagnosis import Category, Cause
from services.evolver.domain.edits import Edit, EditOp, EditStatus
from services.evolver.domain.errors import InvalidRequest, ModelUnavailable, UnusableTarget
from services.evolver.domain.leaks import NO_LEAKS, LeakIndex
from services.evolver.domain.proposal import RejectedProposal
from services.evolver.domain.targets import TargetKind, UpdateMode
from services.evolver.templates import engine_files, load_templates
from services.evolver.use_cases.ask_model import AskModel
from services.evolver.use_cases.ports import ModelRole, Origin, Reply
from services.evolver.use_cases.propose_edit import Proposal, ProposalJob, ProposalStatus, ProposeEdit
from tests.builders.cases import SKILL, diagnosis
from tests.fakes.evolver_fakes import ScriptedModel

TEMPLATES = load_templates(engine_files(None))


def edit(target: str, content: str, op: str = "replace", **changes: Any) -> dict[str, Any]:
    return {"op": op, "target": target, "content": content, "rationale": "pattern", "cases": ["q1"], **changes}


ONE = {"suggestions": ["the tool is terse"], "edits": [edit("Compare every option", "Rule out each option")]}
THREE = {
    "suggestions": [],
    "edits": [
        edit("Compare every option", "Rule out each option"),
        edit("choose the scene", "choose two scenes"),
        edit("", "Count what you saw.", "append"),
    ],
}


def packed(question_id: str, category: Category | None, cause: Cause = Cause.DEFECT, **changes: Any) -> PackedCase:
    found = diagnosis(question_id, category, cause, **changes) if category else None
    return PackedCase(question_id, question_id, f"text of {question_id}", found, False)


PACK = CasePack(
    "Action Reasoning",
    "action-reasoning.md",
    (
        packed("q1", Category.SKILL_SILENT),
        packed("q2", Category.REASONING, Cause.LAPSE, reminder="Reread the question."),
    ),
    (packed("q3", None),),
    {"answered": 3},
    ("q1", "q2", "q3"),
)


def job(**changes: Any) -> ProposalJob:
    made = ProposalJob(Origin("w", "r"), PACK, SKILL, 2, (), UpdateMode.PATCH, TargetKind.SKILL, NO_LEAKS)
    return replace(made, **changes)


async def propose(model: ScriptedModel, asked: ProposalJob | None = None) -> Proposal:
    return await ProposeEdit(AskModel(model, TEMPLATES, 2), 5000, 5).propose(asked or job())


async def test_evo_6_edits_become_a_candidate_with_a_diff() -> None:
    model = ScriptedModel(evolve__skill=ONE)
    found = await propose(model)
    assert found.status is ProposalStatus.CANDIDATE
    assert found.candidate_text == SKILL.replace("Compare every option", "Rule out each option")
    assert "-Open the event before the action. Compare every option" in found.unified_diff
    assert found.suggestions == ("the tool is terse",)
    assert (found.attempts, found.rank_clip_triggered, found.ranks) == (1, False, ())
    assert model.calls[0][1] is ModelRole.EVOLVE


async def test_evo_6_each_edit_keeps_its_rationale_and_cases() -> None:
    found = await propose(ScriptedModel(evolve__skill=ONE))
    assert (found.outcomes[0].edit.rationale, found.outcomes[0].edit.cases) == ("pattern", ("q1",))


async def test_evo_6_the_optimizer_sees_failures_successes_lessons_and_budget() -> None:
    model = ScriptedModel(evolve__skill=ONE)
    await propose(model)
    prompt = model.prompts("evolve.skill")[0]
    assert (
        '<case id="q1">\n<diagnosis category="skill_silent" cause="defect" tier="T2">because of q1</diagnosis>'
        in prompt
    )
    assert '<successes>\n<case id="q3">\ntext of q3\n</case>\n</successes>' in prompt
    assert "<recorded_lessons>\n- Reread the question.\n</recorded_lessons>" in prompt
    assert "<budget>\n2\n</budget>" in prompt
    assert SKILL.strip() in prompt


async def test_evo_4_without_a_defect_nothing_is_proposed() -> None:
    model = ScriptedModel()
    pack = replace(PACK, failures=(packed("q2", Category.UNDETERMINED, Cause.LAPSE, degraded=True),))
    found = await propose(model, job(pack=pack))
    assert (found.status, found.fingerprint, model.calls) == (ProposalStatus.SKIPPED, "", [])


async def test_evo_2_a_bad_answer_is_retried_once_with_its_errors() -> None:
    bad = {"suggestions": [], "edits": [edit("x", "y", "insert_before"), edit("x", "y", cases=[])]}
    model = ScriptedModel(evolve__skill=[bad, ONE])
    found = await propose(model)
    assert (found.status, found.attempts) == (ProposalStatus.CANDIDATE, 2)
    retry = model.calls[1][2][2]
    assert "$.edits[0].op" in retry
    assert "$.edits[1].cases" in retry


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ("I would rather not.", "no JSON object"),
        (Reply('{"suggestions": [], "edits": []}', "length"), "cut off"),
        ('{"suggestions": [], "edits": []} or {"suggestions": ["x"], "edits": []}', "differ"),
        ({"suggestions": []}, "edits"),
        ({"suggestions": [], "edits": [edit("x", "y", cases=["q9"])]}, "no case 'q9'"),
    ],
)
async def test_evo_2_two_bad_answers_reject_the_target_with_the_errors(bad: Any, error: str) -> None:
    found = await propose(ScriptedModel(evolve__skill=bad))
    assert (found.status, found.candidate_text, found.attempts) == (ProposalStatus.REJECTED, "", 2)
    assert error in "; ".join(found.errors)


async def test_evo_7_more_edits_than_budget_are_ranked_and_clipped() -> None:
    model = ScriptedModel(evolve__skill=THREE, evolve__rank={"order": [2, 0, 1]})
    found = await propose(model)
    assert (found.rank_clip_triggered, found.ranks, found.attempts) == (True, (2, 0, 1), 2)
    assert sorted((o.edit.target, o.status) for o in found.outcomes if o.status is EditStatus.CLIPPED) == [
        ("choose the scene", EditStatus.CLIPPED)
    ]
    assert len(found.outcomes) == 3
    assert "Count what you saw." in found.candidate_text
    assert "choose two scenes" not in found.candidate_text


@pytest.mark.parametrize("ranking", [ModelUnavailable("away"), {"order": [0, 0, 1]}, "none", {"order": [0, 1]}])
async def test_evo_7_a_failed_ranking_keeps_the_given_order(ranking: Any) -> None:
    found = await propose(ScriptedModel(evolve__skill=THREE, evolve__rank=ranking))
    assert (found.rank_clip_triggered, found.ranks) == (True, ())
    assert "choose two scenes" in found.candidate_text
    assert "Count what you saw." not in found.candidate_text


async def test_evo_8_no_edit_applied_is_skipped_with_the_reasons() -> None:
    answer = {"suggestions": [], "edits": [edit("not in the skill", "x")]}
    found = await propose(ScriptedModel(evolve__skill=answer))
    assert (found.status, found.fingerprint) == (ProposalStatus.SKIPPED, "")
    assert "occurs 0 times" in found.errors[0]


async def test_evo_8_a_candidate_that_breaks_a_rule_is_rejected_and_can_be_remembered() -> None:
    answer = {"suggestions": [], "edits": [edit("", "word " * 500, "append")]}
    found = await propose(ScriptedModel(evolve__skill=answer))
    assert (found.status, found.candidate_text) == (ProposalStatus.REJECTED, "")
    assert "length" in found.errors[0]
    assert found.fingerprint


async def test_evo_8_a_leaking_edit_is_refused() -> None:
    leaks = LeakIndex.of([("What does the cook do right before the guests arrive at the house?", "Stirs")])
    answer = {
        "suggestions": [],
        "edits": [edit("", "Ask what does the cook do right before the guests come.", "append")],
    }
    found = await propose(ScriptedModel(evolve__skill=answer), job(leaks=leaks))
    assert found.status is ProposalStatus.SKIPPED
    assert "leak" in found.errors[0]


async def test_evo_11_refused_proposals_are_shown_newest_first_and_bounded() -> None:
    refused = tuple(
        RejectedProposal(f"f{i}", (Edit(EditOp.APPEND, "", f"idea {i}", "r"),), f"W 1 L {i}") for i in range(8)
    )
    model = ScriptedModel(evolve__skill=ONE)
    await propose(model, job(rejected=refused))
    prompt = model.prompts("evolve.skill")[0]
    assert prompt.index("W 1 L 0") < prompt.index("W 1 L 4")
    assert "idea 0" in prompt
    assert "idea 5" not in prompt


async def test_evo_11_a_proposal_identical_to_a_rejected_one_is_recognised() -> None:
    first = await propose(ScriptedModel(evolve__skill=ONE))
    refused = (RejectedProposal(first.fingerprint, (), "E 0.2"),)
    same_otherwise_put = {
        "suggestions": [],
        "edits": [edit("action. Compare every option", "action. Rule out each option")],
    }
    for answer in (ONE, same_otherwise_put):
        found = await propose(ScriptedModel(evolve__skill=answer), job(rejected=refused))
        assert (found.status, found.candidate_text) == (ProposalStatus.REPEATED, "")
        assert found.fingerprint == first.fingerprint
    other = await propose(ScriptedModel(evolve__skill=THREE, evolve__rank={"order": [0, 1, 2]}), job(rejected=refused))
    assert other.status is ProposalStatus.CANDIDATE


async def test_evo_11_the_fingerprint_ignores_what_else_changed_in_the_file() -> None:
    first = await propose(ScriptedModel(evolve__skill=ONE))
    grown = SKILL.replace("- Check the frames", "- Look twice.\n- Check the frames")
    again = await propose(ScriptedModel(evolve__skill=ONE), job(current_text=grown))
    assert again.fingerprint == first.fingerprint


REWRITE = {"suggestions": [], "body": "# New\n\n" + "Open the event before. " * 8, "rationale": "r", "cases": ["q1"]}


async def test_evo_6_rewrite_replaces_the_body_and_keeps_front_matter_and_blocks() -> None:
    skill = SKILL.replace("<!-- APPENDIX_START -->\n", "<!-- APPENDIX_START -->\n- Keep me.\n")
    found = await propose(ScriptedModel(evolve__rewrite=REWRITE), job(mode=UpdateMode.REWRITE, current_text=skill))
    assert found.status is ProposalStatus.CANDIDATE
    assert found.candidate_text.startswith(skill[: skill.index("# Why")])
    assert "# New\n" in found.candidate_text
    assert found.candidate_text.endswith(skill[skill.index("<!-- APPENDIX_START") :])
    assert found.outcomes[0].edit.cases == ("q1",)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", ProposalStatus.SKIPPED),
        ("too short", ProposalStatus.REJECTED),
        ("x <!-- MOMENTUM_START --> " * 9, ProposalStatus.SKIPPED),
        ("word " * 500, ProposalStatus.REJECTED),
    ],
)
async def test_evo_6_a_rewrite_passes_the_same_checks(body: str, status: ProposalStatus) -> None:
    model = ScriptedModel(evolve__rewrite={**REWRITE, "body": body})
    found = await propose(model, job(mode=UpdateMode.REWRITE))
    assert (found.status, found.candidate_text) == (status, "")


SYSTEM = """---
name: agent.system
placeholders: [skills]
output: text
---
You answer questions. Look at the scenes first, then decide.

## Tools

- view_node

## Skills

<skills>
{{skills}}
</skills>
"""


async def test_evo_12_a_prompt_is_evolved_with_its_own_template() -> None:
    answer = {"suggestions": [], "edits": [edit("Look at the scenes first", "Search first")]}
    model = ScriptedModel(evolve__system=answer)
    pack = replace(PACK, target_file="agent.system.md")
    found = await propose(model, job(pack=pack, current_text=SYSTEM, kind=TargetKind.SYSTEM))
    assert found.candidate_text == SYSTEM.replace("Look at the scenes first", "Search first")
    prompt = model.prompts("evolve.system")[0]
    assert "<frozen>\n## Tools\n</frozen>" in prompt
    assert "<placeholders>\n<skills>\n{{skills}}\n</skills>\n</placeholders>" in prompt


@pytest.mark.parametrize(
    ("target", "content"),
    [("- view_node", "- other"), ("{{skills}}", "none"), ("<skills>\n", ""), ("then decide", "then {{decide}}")],
)
async def test_evo_12_frozen_sections_and_gaps_stay(target: str, content: str) -> None:
    op = "replace" if content else "delete"
    answer = {"suggestions": [], "edits": [edit(target, content, op)]}
    found = await propose(ScriptedModel(evolve__tool=answer), job(current_text=SYSTEM, kind=TargetKind.TOOL))
    assert found.status is ProposalStatus.SKIPPED
    assert "protected" in found.errors[0]


@pytest.mark.parametrize(
    ("changes", "error", "field"),
    [
        ({"edit_budget": 0}, InvalidRequest, "edit_budget"),
        ({"current_text": "no front matter"}, UnusableTarget, "current_text"),
        ({"current_text": SKILL + "<!-- APPENDIX_START -->"}, UnusableTarget, "current_text"),
        ({"pack": replace(PACK, target_file="")}, InvalidRequest, "case_pack.target_file"),
        ({"mode": UpdateMode.REWRITE, "kind": TargetKind.TOOL}, InvalidRequest, "update_mode"),
    ],
)
async def test_qua_13_unusable_requests_name_their_field(
    changes: dict[str, Any], error: type[InvalidRequest], field: str
) -> None:
    with pytest.raises(error) as caught:
        await propose(ScriptedModel(), job(**changes))
    assert caught.value.field == field


async def test_evo_2_a_model_that_is_away_is_no_answer() -> None:
    with pytest.raises(ModelUnavailable):
        await propose(ScriptedModel(evolve__skill=ModelUnavailable("away")))
