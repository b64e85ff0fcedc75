"""TRN-8: the judged quality of the evidence given, of right and wrong answers alike."""

from typing import Any

import pytest

from services.evolver.domain.case import Answered
from services.evolver.domain.errors import ModelUnavailable, UnknownRun
from services.evolver.domain.evidence import evidence_values
from services.evolver.templates import engine_files, load_templates
from services.evolver.use_cases.ask_model import AskModel
from services.evolver.use_cases.score_evidence import EvidenceScore, ScoreEvidence
from tests.builders.cases import case, question, small_tree, submit
from tests.fakes.evolver_fakes import InMemoryArchive, ScriptedModel

TEMPLATES = load_templates(engine_files(None))


def answered(question_id: str = "q1", **fields: Any) -> Answered:
    values = {"prediction": "A", "stop_reason": "finished", "evidence": ("v_e1",), "reasoning": "he cries", **fields}
    return Answered(question_id, correct=values["prediction"] == "B", **values)


async def scores(
    model: ScriptedModel, *answers: Answered, judging: bool = True, workers: int = 2, asked: tuple[str, ...] = ()
) -> list[EvidenceScore]:
    store = InMemoryArchive([question(answer.question_id) for answer in answers], answers, {}, {}, {"v": small_tree()})
    use_case = ScoreEvidence(store, AskModel(model, TEMPLATES, workers), workers, judging)
    return [each async for each in use_case.scores("w", "r", "d", asked)]


async def test_trn_8_evidence_of_right_and_wrong_answers_is_rated() -> None:
    model = ScriptedModel(diagnose__score={"quality": 0.7, "why": "clear"})
    found = await scores(model, answered("q1"), answered("q2", prediction="B"))
    assert found == [EvidenceScore("q1", 0.7, "clear"), EvidenceScore("q2", 0.7, "clear")]
    assert "The man cuts onions and starts to cry." in model.prompts("diagnose.score")[0]


def test_trn_8_the_judge_is_blind_to_right_and_wrong() -> None:
    shown = [
        evidence_values(case(submit(0), question=question(answer=gold), evidence=("v_e1",), reasoning="r"))
        for gold in "ABC"
    ]
    assert shown[0] == shown[1] == shown[2]


@pytest.mark.parametrize(
    "fields", [{"evidence": ()}, {"evidence": ("v_e9",)}, {"prediction": "", "stop_reason": "budget_exceeded"}]
)
async def test_trn_8_without_evidence_the_quality_is_zero_without_a_judge(fields: dict[str, Any]) -> None:
    model = ScriptedModel()
    assert [each.score for each in await scores(model, answered(**fields))] == [0.0]
    assert model.calls == []


@pytest.mark.parametrize("reason", ["error", "parse_error"])
async def test_trn_8_infra_has_no_score(reason: str) -> None:
    assert [each.score for each in await scores(ScriptedModel(), answered(stop_reason=reason))] == [None]


@pytest.mark.parametrize("bad", [ModelUnavailable("away"), "no json", {"quality": 7, "why": "x"}])
async def test_trn_8_a_judge_that_fails_gives_no_score_never_a_zero(bad: Any) -> None:
    found = await scores(ScriptedModel(diagnose__score=bad), answered())
    assert found[0].score is None
    assert found[0].why


async def test_trn_8_with_judging_off_there_are_no_scores_and_no_calls() -> None:
    model = ScriptedModel()
    assert [each.score for each in await scores(model, answered(), judging=False)] == [None]
    assert model.calls == []


async def test_trn_8_many_answers_are_rated_in_order_with_bounded_calls() -> None:
    model = ScriptedModel(diagnose__score={"quality": 1, "why": "x"})
    found = await scores(model, *(answered(f"q{i:02}") for i in range(25)), workers=3)
    assert [each.question_id for each in found] == [f"q{i:02}" for i in range(25)]
    assert model.most_in_flight <= 3


async def test_trn_8_a_text_only_answer_is_rated_by_its_reasoning() -> None:
    text_only = case(submit(0), tree=None, reasoning="because water boils")
    assert "no video" in evidence_values(text_only)["evidence"]
    assert evidence_values(text_only)["reasoning"] == "because water boils"


async def test_trn_8_an_unknown_run_is_an_error() -> None:
    with pytest.raises(UnknownRun):
        await scores(ScriptedModel())
