"""What the gate promises about chance, checked by drawing (GAT-6, GAT-9, GAT-14)."""

import asyncio
import random

import numpy as np
import pytest
from numpy.typing import NDArray

from services.gate.domain.ladder import LadderCandidate, LadderParameters, LadderSeed, build_ladder
from services.gate.domain.power import exit_probabilities
from services.gate.domain.round_spec import RoundOptions
from services.gate.domain.simulation import FlipRates, replay
from services.gate.domain.verdict import Decision, GateParameters
from services.gate.use_cases.ports import ArmCall
from services.gate.use_cases.validate_skills import ValidateSkills
from tests.builders.gate_builders import round_spec, store_for, type_spec
from tests.fakes.gate_fakes import ScriptedInference, arm_of

UNITS, LADDER = 90, 60
HARD, EASY = (2.0, 4.67), (6.0, 1.5)
WITHOUT_DIRECTION = GateParameters(lambda_dir=-1e9)


def null_gates(beta: tuple[float, float], draws: int, order: str, knows_base: bool, gates: int) -> float:
    """Share of null candidates confirmed when the ladder is ordered by an estimate from `draws` draws a unit.

    `knows_base`: one of these draws is the base result itself. `order`: `warm` and `cold` are the ladder's two kinds of
    estimate, `hardness` an order by the estimate alone.
    """
    rng = np.random.default_rng([int(10 * beta[0]), draws, knows_base, len(order)])
    outcomes = np.empty((gates, LADDER), dtype=np.int8)
    for gate in range(gates):
        p = rng.beta(*beta, UNITS)
        base, cand = rng.random(UNITS) < p, rng.random(UNITS) < p
        seen = rng.random((draws, UNITS)) < p
        if knows_base:
            seen[0] = base
        ladder = ordered(seen.sum(axis=0), draws, order, gate, rng)
        outcomes[gate] = cand[ladder].astype(np.int8) - base[ladder].astype(np.int8)
    return replay(outcomes, WITHOUT_DIRECTION).share(Decision.ACCEPT_CONFIRMED)


def ordered(right: NDArray[np.int64], draws: int, order: str, gate: int, rng: np.random.Generator) -> NDArray[np.int64]:
    if order == "hardness":
        return np.argsort(right + 0.5 * rng.random(UNITS))[:LADDER]
    if order == "warm":
        units = [LadderCandidate(str(i), ("q",), float(k) / draws) for i, k in enumerate(right)]
    else:
        units = [LadderCandidate(str(i), ("q",), None, int(k), draws) for i, k in enumerate(right)]
    ladder = build_ladder(units, (), LadderSeed("w", "t", 0, gate), LadderParameters(n_max=LADDER))
    return np.array([int(rung.candidate.unit_id) for rung in ladder.rungs])


@pytest.mark.parametrize("beta", [HARD, EASY], ids=["hard", "easy"])
@pytest.mark.parametrize(("order", "draws"), [("cold", 1), ("warm", 2), ("warm", 4)])
def test_gat_9_an_estimate_without_the_base_draw_accepts_next_to_nothing(
    beta: tuple[float, float], order: str, draws: int
) -> None:
    assert null_gates(beta, draws, order, knows_base=False, gates=1200) <= 0.02


def test_gat_9_an_estimate_with_the_base_draw_accepts_noise() -> None:
    """The negative control: the same ladder, fed the forbidden estimate."""
    assert null_gates(EASY, 2, "warm", knows_base=True, gates=600) > 0.05


@pytest.mark.parametrize("beta", [HARD, EASY], ids=["hard", "easy"])
def test_gat_9_an_order_by_hardness_that_knows_the_base_draw_accepts_nearly_anything(
    beta: tuple[float, float],
) -> None:
    assert null_gates(beta, 2, "hardness", knows_base=True, gates=600) > 0.30
    assert null_gates(beta, 2, "hardness", knows_base=False, gates=600) <= 0.03


def latency_gates(by_arrival: bool, gates: int = 3000) -> float:
    """Share of null candidates accepted when right answers come sooner and some units are still out at each look."""
    rng = np.random.default_rng(11)
    p = rng.beta(3.0, 3.0, (gates, LADDER))
    base, cand = rng.random((gates, LADDER)) < p, rng.random((gates, LADDER)) < p
    outcomes = cand.astype(np.int8) - base.astype(np.int8)
    if by_arrival:
        arrival = np.where(cand, 1.0, 20.0) * rng.exponential(size=cand.shape)
        outcomes = np.take_along_axis(outcomes, np.argsort(arrival, axis=1), axis=1)
    return replay(outcomes, GateParameters()).share(Decision.ACCEPT_CONFIRMED, Decision.ACCEPT_PROVISIONAL)


def test_gat_14_consuming_by_arrival_accepts_noise_where_latency_depends_on_being_right() -> None:
    """Base answers come from the cache at once, so the candidate's latency alone decides when a pair is complete."""
    assert latency_gates(by_arrival=True) > 0.05


def test_gat_14_consuming_the_prefix_does_not() -> None:
    assert latency_gates(by_arrival=False) <= 0.05


def dice_gates(
    base_right: float, cand_right: float, cand_unparsable: float, gates: int, length: int = 60
) -> list[Decision]:
    """Whole rounds with random arms, whose latency depends on being right."""
    rng = random.Random(2026)
    types = [type_spec(f"T{i}", [1] * length) for i in range(4)]

    async def reply(call: ArmCall) -> list[tuple[bool, str]]:
        cand = arm_of(call) == "cand"
        if cand and rng.random() < cand_unparsable:
            return [(False, "parse_error")]
        correct = rng.random() < (cand_right if cand else base_right)
        for _ in range(rng.randrange(3) if correct else rng.randrange(12)):
            await asyncio.sleep(0)
        return [(correct, "finished")]

    async def go() -> list[Decision]:
        decisions: list[Decision] = []
        while len(decisions) < gates:
            validate = ValidateSkills(ScriptedInference(reply), store_for(types))
            outcome = await validate.run(round_spec(types, RoundOptions(concurrency=16)), lambda _: None)
            decisions += [one.verdict.decision for one in outcome.outcomes]
        return decisions

    return asyncio.run(go())


def test_gat_9_an_unchanged_skill_is_accepted_at_most_once_in_twenty() -> None:
    decisions = dice_gates(base_right=0.6, cand_right=0.6, cand_unparsable=0.0, gates=200)
    assert len(decisions) == 200
    assert sum(decision.accepts for decision in decisions) <= 10


def test_gat_6_a_candidate_right_half_the_time_and_unparsable_otherwise_is_never_accepted() -> None:
    """Whole rounds; `test_parse_errors.py` has the exact probabilities."""
    decisions = dice_gates(base_right=0.5, cand_right=1.0, cand_unparsable=0.5, gates=100)
    assert not any(decision.accepts for decision in decisions)
    assert Decision.REJECT_UNSTABLE in decisions


def test_gat_14_whole_rounds_accept_a_better_skill_as_often_as_exact_calculation_says() -> None:
    decisions = dice_gates(base_right=0.4, cand_right=0.75, cand_unparsable=0.0, gates=120)
    exits = exit_probabilities(FlipRates(win=0.6 * 0.75, loss=0.4 * 0.25), 60, GateParameters())
    expected = exits.probability[Decision.ACCEPT_CONFIRMED] + exits.probability[Decision.ACCEPT_PROVISIONAL]
    accepted = sum(decision.accepts for decision in decisions) / 120
    assert expected == pytest.approx(0.852, abs=0.002)
    assert accepted == pytest.approx(expected, abs=4 * (expected * (1 - expected) / 120) ** 0.5)
