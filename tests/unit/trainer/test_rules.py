"""The small rules of a run: names, trainability, stopping, budget, cooldown, settlement, held-out plan, estimates."""

import pytest

from services.questions import Unit
from services.trainer.domain import run_ids
from services.trainer.domain.budget import BudgetLimits, Usage, reached, require_room
from services.trainer.domain.cooldown import cooldowns_after, on_cooldown
from services.trainer.domain.errors import BudgetReached
from services.trainer.domain.fingerprints import config_fingerprints, fingerprint
from services.trainer.domain.holdout import HoldoutLine, VersionPair, plan_holdout
from services.trainer.domain.settlement import Candidate, disjoint_targets, settle
from services.trainer.domain.stopping import mixed_score, should_stop
from services.trainer.domain.trainability import check_trainability
from services.trainer.domain.unit_results import share_right, unit_outcomes


def test_gat_5_the_gate_prefix_carries_run_epoch_step_and_slug() -> None:
    assert run_ids.gate_prefix("demo", 0, 12, "Action Reasoning") == "demo_e0_s12_gate_action-reasoning"


def test_inf_6_epochs_draw_fresh_samples() -> None:
    assert run_ids.epoch_salt("demo", 1) == "demo:e1"


@pytest.mark.parametrize("bad", ["", "a_b", "Demo", "../x", "-x", "a" * 65])
def test_a_run_id_is_one_lower_case_name_without_underscores(bad: str) -> None:
    assert not run_ids.is_run_id(bad)


def test_trn_6_types_with_too_few_units_are_dropped_with_the_figure() -> None:
    verdict = check_trainability(["a"] * 9 + ["b"] * 3 + ["c"] * 30, ["a"] * 3 + ["b"] * 3 + ["c"], 2, 8)
    assert verdict.trainable == ("a",)
    assert [(d.task_type, d.n_val, d.n_units) for d in verdict.dropped] == [("b", 3, 6), ("c", 1, 31)]
    assert "trainable_min_units is 8" in verdict.dropped[0].reason


def test_trn_6_a_type_that_only_test_holds_is_named_too() -> None:
    verdict = check_trainability(["a"] * 9, ["a"] * 3, 2, 8, known_types={"a", "z"})
    assert verdict.trainable == ("a",)
    assert [(d.task_type, d.n_units, d.reason) for d in verdict.dropped] == [
        ("z", 0, "0 units in val, eval_min_per_class is 2")
    ]


def test_trn_10_stops_after_patience_epochs_without_a_better_best() -> None:
    assert not should_stop([0.5, 0.6, 0.6], patience=2)
    assert should_stop([0.5, 0.6, 0.6, 0.59], patience=2)
    assert not should_stop([0.5, 0.6, 0.6, 0.61], patience=2)
    assert not should_stop([0.5, 0.4, 0.4, 0.4], patience=0)


def test_trn_8_mixed_is_absent_where_nothing_was_judged() -> None:
    assert mixed_score(0.5, None, 0.7) is None
    assert mixed_score(0.5, 1.0, 0.7) == pytest.approx(0.65)


def test_trn_12_the_first_used_up_limit_is_named() -> None:
    assert reached(BudgetLimits(), Usage(calls=10**9)) is None
    assert "--max-calls is 10" in str(reached(BudgetLimits(max_calls=10), Usage(calls=10)))
    assert reached(BudgetLimits(max_calls=10), Usage(calls=9)) is None
    with pytest.raises(BudgetReached, match="max-minutes"):
        require_room(BudgetLimits(max_minutes=1), Usage(seconds=60))


def test_trn_7_a_rejected_type_sits_out_exactly_the_cooldown() -> None:
    cooldowns = cooldowns_after({}, ["a"], global_step=4, length=2)
    assert [on_cooldown(cooldowns, "a", step) for step in (5, 6, 7)] == [True, True, False]
    assert cooldowns_after(cooldowns, [], global_step=6, length=2) == {}
    assert cooldowns_after({}, ["a"], global_step=4, length=0) == {}


def test_trn_7_accepts_land_in_alphabetical_order_each_with_the_one_file_it_changed() -> None:
    candidates = [Candidate("b", "b.md", "B2"), Candidate("a", "a.md", "A2"), Candidate("c", "c.md", "C2")]
    versions = settle(candidates, {"a": True, "b": True, "c": False})
    assert [version.task_type for version in versions] == ["a", "b"]
    assert [version.overrides for version in versions] == [{"a.md": "A2"}, {"b.md": "B2"}]


def test_trn_7_a_candidate_without_an_outcome_is_never_settled_silently() -> None:
    with pytest.raises(KeyError):
        settle([Candidate("a", "a.md", "A2")], {})


def test_gat_10_one_candidate_per_file() -> None:
    kept, clashes = disjoint_targets(
        [Candidate("z", "default-strategy.md", "Z"), Candidate("m", "default-strategy.md", "M")]
    )
    assert [each.task_type for each in kept] == ["m"]
    assert [(clash.candidate.task_type, clash.taken_by) for clash in clashes] == [("z", "m")]


V1, V2, V3 = (VersionPair(f"v{number}", "v1") for number in (1, 2, 3))


def test_trn_9_four_lines_and_nothing_measured_twice() -> None:
    assert plan_holdout(V1, V3, V2, V3, evaluated=[]) == [
        HoldoutLine("baseline", V1, "derived"),
        HoldoutLine("final", V3, "measured"),
        HoldoutLine("best_hard", V2, "measured"),
        HoldoutLine("best_mixed", V3, "pointer"),
    ]


def test_trn_9_the_memory_survives_a_resume() -> None:
    assert [line.how for line in plan_holdout(V1, V3, V2, None, evaluated=[V2])] == ["derived", "measured", "pointer"]


def test_trn_9_an_epoch_without_accepts_measures_nothing() -> None:
    assert [line.how for line in plan_holdout(V1, V1, V1, V1, evaluated=[])] == ["derived"] + ["pointer"] * 3


def test_gat_3_a_unit_without_all_its_results_has_no_outcome() -> None:
    units = [Unit("u", "a", ("q1", "q2")), Unit("w", "a", ("q3",))]
    assert unit_outcomes(units, {"q1": True, "q2": False, "q3": True}) == {"u": False, "w": True}
    assert unit_outcomes(units, {"q1": True, "q3": True}) == {"w": True}
    assert share_right({}) is None


def test_trn_11_a_refusal_can_name_what_changed() -> None:
    saved, current = config_fingerprints({"epochs": 2, "seed": 0}), config_fingerprints({"seed": 0, "epochs": 3})
    assert [key for key in saved if saved[key] != current[key]] == ["config.epochs"]
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
