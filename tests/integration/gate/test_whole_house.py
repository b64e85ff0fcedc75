"""A round through real store, real inference and the simulated model with stated probabilities (`sim-dice`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from videotree.gate.v1 import verdict_pb2
from videotree.store.v1 import run_service_pb2

from services.skills import slug
from tests.builders.whole_house import Content, House, Outcomes, numbered_questions, round_request, whole_house
from tests.fakes.in_memory_answering import skill

BETTER, SAME = "Cause Why", "Scene Order"
WORLD = f"""
seed = 5
[dice]
default = 0.4
[[dice.effects]]
phrase = "look twice"
task_type = "{BETTER}"
shift = 0.5
"""
SKILLS = {"default-strategy.md": skill("default-strategy", "default", "Look.")}
CANDIDATES = {
    BETTER: skill(slug(BETTER), BETTER, "Look, then look twice."),
    SAME: skill(slug(SAME), SAME, "Look."),
}
QUESTIONS = numbered_questions([BETTER, SAME], 40)


async def outcomes(up: House, step: int) -> Outcomes:
    return await up.outcomes(round_request(QUESTIONS, CANDIDATES, step))


async def stored(up: House, run_id: str) -> dict[str, bool]:
    listed = await up.store.runs.ListPredictions(run_service_pb2.ListPredictionsRequest(workspace="w", run_id=run_id))
    return {row.question_id: row.correct for row in listed.predictions}


@pytest.mark.slow
async def test_a_round_through_the_whole_house_accepts_what_helps_and_not_what_does_nothing(tmp_path: Path) -> None:
    async with whole_house(tmp_path, Content(WORLD, QUESTIONS, SKILLS)) as up:
        first = await outcomes(up, step=0)
        second = await outcomes(up, step=1)
        base = await stored(up, "train_e0_s0_gate_cause-why_base")
        cand = await stored(up, "train_e0_s0_gate_cause-why_cand")
    better, same = first[BETTER], first[SAME]
    assert verdict_pb2.Decision.Name(better.verdict.decision) == "DECISION_ACCEPT_CONFIRMED"
    assert "ACCEPT" not in verdict_pb2.Decision.Name(same.verdict.decision)
    assert better.cand_accuracy > better.base_accuracy
    for row in better.evidence:
        assert (base[row.unit_id], cand[row.unit_id]) == (row.base_correct, row.cand_correct)
    assert better.model_calls == better.questions_run > 0
    assert (better.cache_hits, better.base_infra_rate, better.cand_infra_rate) == (0, 0.0, 0.0)

    again = second[BETTER]
    assert again.cache_hits == len(base), "every base of the first step is kept, counted or not"
    repeated = {row.unit_id: row.base_correct for row in again.evidence}
    assert {unit: correct for unit, correct in base.items() if unit in repeated}.items() <= repeated.items()
    draws = [{unit.unit_id: unit.cand for unit in one[SAME].observed if unit.cand} for one in (first, second)]
    shared = draws[0].keys() & draws[1].keys()
    assert any(draws[0][unit] != draws[1][unit] for unit in shared), "a candidate is drawn afresh in each step"
