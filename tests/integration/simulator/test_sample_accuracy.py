"""The product's own agent on the bundled sample: what v1 skills reach, and what advice changes (SIM-1)."""

import asyncio
from collections.abc import Mapping

import pytest

from services.inference.domain.agent_skills import SkillMode
from services.questions import parse_question_lines
from tests.builders.simulated_world import SAMPLE, sample_knowledge, sample_skills, with_advice
from tests.fakes.simulated_answering import FolderLibrary, answer_all, share_right

QUESTIONS = parse_question_lines((SAMPLE / "questions.jsonl").read_bytes()).questions
KNOWLEDGE = sample_knowledge()
PROPOSALS = KNOWLEDGE.world.evolve.proposals
TRAINABLE = {"Action Reasoning", "Attribute Perception", "Counting Problem", "Temporal Perception"}


def shares(skills: Mapping[str, str], *task_types: str, mode: SkillMode = SkillMode.AUTO) -> dict[str, float]:
    asked = [one for one in QUESTIONS if not task_types or one.task_type in task_types]
    library = FolderLibrary(SAMPLE / "trees")
    return share_right(asyncio.run(answer_all(asked, KNOWLEDGE, library, skills, run_id="x:e0", skill_mode=mode)))


def improved(text: str) -> dict[str, str]:
    return {name: with_advice(skill, text) for name, skill in sample_skills().items()}


@pytest.fixture(scope="module")
def v1() -> dict[str, float]:
    return shares(sample_skills())


def test_v1_leaves_room_in_four_types_and_is_good_at_two(v1: dict[str, float]) -> None:
    for task_type, share in v1.items():
        low, high = (0.40, 0.65) if task_type in TRAINABLE else (0.80, 1.0)
        assert low <= share <= high, (task_type, share)


@pytest.mark.parametrize(
    "proposal",
    [one for one in PROPOSALS if one.quality == "helpful" and set(one.task_types) <= set(TRAINABLE)],
    ids=lambda one: one.text[:30],
)
def test_helpful_advice_lifts_its_type_to_what_a_gate_can_confirm(proposal: object) -> None:
    (task_type,) = proposal.task_types  # type: ignore[attr-defined]
    assert shares(improved(proposal.text), task_type)[task_type] >= 0.82  # type: ignore[attr-defined]


def test_neutral_advice_changes_no_type_by_much(v1: dict[str, float]) -> None:
    neutral = next(one for one in PROPOSALS if one.quality == "neutral")
    for task_type, share in shares(improved(neutral.text)).items():
        assert abs(share - v1[task_type]) < 0.15, task_type


def test_harmful_advice_hurts_its_types(v1: dict[str, float]) -> None:
    for proposal in (one for one in PROPOSALS if one.quality == "harmful"):
        found = shares(improved(proposal.text), *proposal.task_types)
        for task_type, share in found.items():
            assert share < v1[task_type] - 0.05, (proposal.text, task_type)


def test_agt_4_in_manual_mode_the_agent_reads_the_skill_it_needs() -> None:
    helpful = next(one for one in PROPOSALS if one.quality == "helpful" and "Counting Problem" in one.task_types)
    skills = {**sample_skills(), "counting-problem.md": improved(helpful.text)["counting-problem.md"]}
    assert shares(skills, "Counting Problem", mode=SkillMode.MANUAL)["Counting Problem"] >= 0.8


def test_without_skills_the_agent_still_walks() -> None:
    assert shares(sample_skills(), "Spatial Perception", mode=SkillMode.NONE)["Spatial Perception"] >= 0.8
