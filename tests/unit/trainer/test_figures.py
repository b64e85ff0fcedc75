"""Scores, plans, edit budgets, version names and exported skills."""

import json

import pytest
import yaml

from services.skills import SkillFormatError
from services.trainer.domain.answering import Answer, require_living_endpoint, require_sound_answers
from services.trainer.domain.best import best_entry, better, epoch_scores
from services.trainer.domain.cost_plan import CostPerQuestion, plan_cost
from services.trainer.domain.edit_budget import edit_budget_at
from services.trainer.domain.endpoints import Endpoint, error_rate
from services.trainer.domain.errors import EndpointDown
from services.trainer.domain.evaluations import DualMetric
from services.trainer.domain.evolution import Edit, RejectedEdit
from services.trainer.domain.skill_folders import skill_folders
from services.trainer.domain.trainer_state import (
    Probation,
    TrainerState,
    followed,
    state_from_json,
    state_to_json,
    with_probation,
    with_rejected,
)
from services.trainer.domain.versions import upcoming_versions
from services.trainer.domain.workspaces import BestEntry


def metric(epoch: int, kind: str, hard: float | None, version: str, mixed: float | None = None) -> DualMetric:
    return DualMetric("r", epoch, kind, "val", hard, None, mixed, version, "v1", 10, 0, "{}", f"r_{epoch}_{kind}")


METRICS = [
    metric(1, "slow_candidate", 0.9, "v2+slow-update"),
    metric(1, "final", 0.7, "v2", 0.5),
    metric(-1, "initial", 0.5, "v1", 0.6),
    metric(0, "final", 0.7, "v2"),
]


def test_trn_8_the_first_of_equal_bests_stays_and_a_reverted_candidate_is_none() -> None:
    best = best_entry(METRICS, "hard")
    assert best == BestEntry("v2", "v1", 0.7, 0, "r_0_final")
    assert best_entry(METRICS, "mixed") == BestEntry("v1", "v1", 0.6, -1, "r_-1_initial")
    assert better(best, BestEntry("v9", "v1", 0.7, 3, "x")) is None


def test_trn_10_scores_open_with_the_start_and_ignore_reverted_candidates() -> None:
    assert epoch_scores(METRICS) == [0.5, 0.7, 0.7]


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_evo_7_the_edit_budget_falls_from_start_to_end(schedule: str) -> None:
    budgets = [edit_budget_at(step, 20, 6, 2, schedule) for step in range(20)]  # type: ignore[arg-type]
    assert (budgets[0], budgets[-1]) == (6, 2)
    assert budgets == sorted(budgets, reverse=True)
    assert edit_budget_at(25, 20, 6, 2, schedule) == 2  # type: ignore[arg-type]


def test_evo_7_a_constant_budget_and_a_single_step_keep_the_start() -> None:
    assert edit_budget_at(19, 20, 6, 2, "constant") == 6
    assert edit_budget_at(0, 1, 6, 2, "cosine") == 6


def test_trn_12_a_plan_grows_with_each_kind_of_work() -> None:
    def calls(**changed: object) -> int:
        base: dict[str, object] = {
            "epochs": 2,
            "diag_questions": 100,
            "val_questions": 50,
            "test_questions": 40,
            "ladder_questions": {"a": 30},
            "steps_per_epoch": 4,
            "gate_cooldown": 1,
            "slow_update": False,
            "holdout_test": False,
        }
        return plan_cost(**{**base, **changed}, cost=CostPerQuestion(2.0, 10.0)).calls  # type: ignore[arg-type]

    assert calls() == 2 * (50 + 2 * 100 + 2 * 2 * 30 + 2 * 30 + 2 * 50)
    assert calls(slow_update=True) == calls() + 2 * 50
    assert calls(holdout_test=True) == calls() + 2 * 80
    assert calls(gate_cooldown=0) == calls() + 2 * 2 * 2 * 30
    assert calls(prompt_turns_per_epoch=3, prompt_ladder_questions=60) == calls() + 2 * (2 * 3 * 60 + 2 * 60)
    assert calls(prompt_ladder_questions=60) == calls(), "no prompt is a target"
    assert calls(probation_questions=8) == calls() + 2 * 2 * 8


def test_upcoming_versions_are_numbered_by_value_and_not_by_text() -> None:
    assert upcoming_versions(["v1", "v10", "v9"], 2) == ["v11", "v12"]
    assert upcoming_versions([], 1) == ["v1"]


SKILL = "---\nname: a\ndescription: 'How: to\n  look'\ntask_type: Action Reasoning\n---\n# Body\n\nLook.\n"


def test_trn_13_an_exported_skill_keeps_its_body_and_names_its_folder() -> None:
    folders = skill_folders({"action-reasoning.md": SKILL})
    _, front, body = folders["action-reasoning/SKILL.md"].split("---\n", 2)
    fields = yaml.safe_load(front)
    assert (fields["name"], fields["description"]) == ("action-reasoning", "How: to look")
    assert fields["metadata"] == {"task_type": "Action Reasoning"}
    assert body == "# Body\n\nLook.\n"


def test_trn_13_a_file_that_is_no_skill_is_refused() -> None:
    with pytest.raises(SkillFormatError):
        skill_folders({"a.md": "just text"})


def test_trn_11_the_state_survives_the_checkpoint() -> None:
    refused = RejectedEdit("f", (Edit("append", "", "text", "why", ("q1", "q2")),), "E too small")
    state = with_rejected(TrainerState({"a": 3}), "a", refused, keep=2)
    edits = (Edit("append", "", "text", "why", ("q1", "q2")),)
    state = with_probation(state, Probation("a", "a.md", "old", "new", (("u", True, False),), "f", edits))
    assert state_from_json(state_to_json(state)) == state
    assert state_from_json("") == TrainerState()


def test_sto_9_a_state_saved_before_pairs_accumulated_over_epochs_goes_on() -> None:
    older = {
        "task_type": "a",
        "target_file": "a.md",
        "predecessor_text": "old",
        "current_text": "new",
        "pairs": [["u", True, False]],
    }
    saved = json.dumps({"cooldowns": {"a": 3}, "rejected": {}, "probation": {"a": older}})
    assert state_from_json(saved) == TrainerState(
        {"a": 3}, {}, {"a": Probation("a", "a.md", "old", "new", (("u", True, False),))}
    )


MOMENTUM = "\n<!-- MOMENTUM_START -->\n- {}\n<!-- MOMENTUM_END -->\n"


def test_gat_13_a_probation_follows_its_file_through_a_slow_update_and_through_nothing_else() -> None:
    begun = Probation("a", "a.md", "old\n", "new\n")
    assert followed(begun, "new\n") == begun
    once = followed(begun, "new\n" + MOMENTUM.format("slower"))
    assert once is not None
    assert once.predecessor_text == "old\n" + MOMENTUM.format("slower")
    assert once.current_text == "new\n" + MOMENTUM.format("slower")
    twice = followed(once, "new\n" + MOMENTUM.format("faster"))
    assert twice is not None
    assert twice.predecessor_text == "old\n" + MOMENTUM.format("faster")
    for other in ("", "old\n", "newer\n", "newer\n" + MOMENTUM.format("slower")):
        assert followed(once, other) is None


def test_evo_11_refused_proposals_are_bounded_and_newest_first() -> None:
    state = TrainerState()
    for number in range(4):
        state = with_rejected(state, "a", RejectedEdit(str(number), (), ""), keep=2)
    assert [each.fingerprint for each in state.rejected["a"]] == ["3", "2"]


def answer(stop_reason: str) -> Answer:
    return Answer("q", "q", "a", "", False, stop_reason, 0, 1, 0, 0, 0, False, "connection refused")


def test_trn_13b_a_faulty_endpoint_is_not_a_dead_one() -> None:
    require_living_endpoint([answer("error")] * 9, 100)
    require_living_endpoint([*[answer("error")] * 30, answer("finished")], 100)
    with pytest.raises(EndpointDown, match="connection refused"):
        require_living_endpoint([answer("error")] * 10, 100)
    with pytest.raises(EndpointDown):
        require_living_endpoint([answer("error")] * 3, 3)


def endpoint(attempts: int, failures: int) -> Endpoint:
    return Endpoint("e", "http://x", "m", ("agent",), "closed", 0, None, 0, 0, 1, attempts, failures, "")


def test_trn_13b_the_error_rate_is_that_of_the_round_and_absent_without_attempts() -> None:
    assert error_rate((endpoint(100, 50),), (endpoint(200, 60),)) == pytest.approx(0.1)
    assert error_rate((endpoint(100, 50),), (endpoint(100, 50),)) is None


def test_gat_6_an_evaluation_with_too_many_infrastructure_faults_is_not_scored() -> None:
    sound = [answer("finished")] * 18
    require_sound_answers([*sound, answer("error"), answer("error")], 0.1)
    require_sound_answers([*sound, *[answer("parse_error")] * 20], 0.1)
    with pytest.raises(EndpointDown, match="3 of 21 questions failed"):
        require_sound_answers([*sound, *[answer("error")] * 3], 0.1)
