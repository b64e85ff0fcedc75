"""EVO-5: what a proposal is shown."""

import pytest

from services.evolver.domain.case_pack import (
    PackLimits,
    build_case_pack,
    case_texts,
    diverse_failures,
    spread_successes,
)
from services.evolver.domain.diagnosis import Category, Cause
from services.evolver.domain.trace import estimate_tokens
from tests.builders.cases import case, diagnosis, question, submit, view

DEFECT, LAPSE = Cause.DEFECT, Cause.LAPSE


def test_evo_5_failures_have_defects_first_and_take_turns_by_category() -> None:
    diagnoses = [
        diagnosis("a", Category.REASONING, LAPSE),
        diagnosis("b", Category.SKILL_SILENT, DEFECT),
        diagnosis("c", Category.SKILL_SILENT, DEFECT),
        diagnosis("d", Category.MISSED_NODES, DEFECT),
        diagnosis("e", Category.UNDETERMINED, LAPSE, degraded=True),
        diagnosis("f", Category.SKILL_SILENT, DEFECT),
        diagnosis("g", Category.FORMAT, LAPSE),
    ]
    assert [each.question_id for each in diverse_failures(reversed(diagnoses))] == ["b", "d", "c", "f", "g", "a", "e"]


def test_evo_5_a_pack_holds_traces_statistics_target_and_units() -> None:
    wrong = case(view(0, "e1", "the onions"), submit(1), question=question("q1", unit_id="u1"))
    right = case(view(0, "e2", "the pot"), submit(1, "B"), question_id="q2", prediction="B")
    found = {"q1": diagnosis("q1", Category.SKILL_SILENT, DEFECT)}
    pack = build_case_pack("Action Reasoning", "action-reasoning.md", [wrong, right], found, 3, PackLimits())
    assert pack.target_file == "action-reasoning.md"
    assert [each.question_id for each in pack.failures] == ["q1"]
    assert [(each.question_id, each.diagnosis) for each in pack.successes] == [("q2", None)]
    assert "<gold_answer>B. Nobody watches it</gold_answer>" in pack.failures[0].text
    assert "<output>the onions</output>" in pack.failures[0].text
    assert not pack.failures[0].cut
    assert pack.unit_ids == ("q2", "u1")
    assert pack.statistics == {
        "answered": 2, "right": 1, "wrong": 1, "infra": 3, "defects": 1, "lapses": 0, "degraded": 0,
        "by_category": {"skill_silent": 1}, "mean_steps_used": 1.0,
    }  # fmt: skip


def test_evo_5_a_pack_keeps_its_limits() -> None:
    wrong = [case(submit(0), question_id=f"q{i}") for i in range(9)]
    right = [case(submit(0, "B"), question_id=f"r{i}", prediction="B") for i in range(9)]
    found = {f"q{i}": diagnosis(f"q{i}", Category.SKILL_SILENT, DEFECT) for i in range(9)}
    pack = build_case_pack("T", "t.md", [*wrong, *right], found, 0, PackLimits(3, 2))
    assert (len(pack.failures), len(pack.successes), len(pack.unit_ids)) == (3, 2, 5)
    assert pack.statistics["wrong"] == 9


@pytest.mark.parametrize("bound", [600, 2000, 100_000])
def test_evo_5_texts_together_keep_the_token_bound_and_cuts_are_marked(bound: int) -> None:
    cases = [case(view(0, "e1", "x" * size), submit(1), question_id=f"q{size}") for size in (10, 4000, 20_000)]
    texts = case_texts(cases, bound)
    assert sum(estimate_tokens(text) for text, _ in texts) <= bound
    for text, cut in texts:
        assert cut == ("cut ...]" in text)
    assert texts[0][1] is False
    assert texts[2][1] is (bound < 100_000)


def test_evo_5_successes_are_spread_from_short_to_long_ways() -> None:
    cases = [case(*[view(i, "e1") for i in range(n)], submit(n), question_id=f"q{n:02}") for n in range(1, 12)]
    assert [each.answered.steps_used for each in spread_successes(cases, 3)] == [1, 6, 11]
    assert spread_successes(cases, 0) == []
