"""Whole trainings against a world in memory (tests/fakes/trainer_world.py)."""

import dataclasses
import json
from typing import Any

import pytest

from services.trainer.config import TrainerConfig
from services.trainer.domain.budget import BudgetLimits
from services.trainer.domain.errors import (
    BudgetReached,
    EndpointDown,
    MissingResults,
    NothingTrainable,
    ServiceFailed,
    WorkspaceProblem,
)
from services.trainer.domain.step_rows import StepReport
from services.trainer.domain.trainer_state import state_from_json
from services.trainer.use_cases.open_run import gather_run, start_run
from services.trainer.use_cases.spend import Meter, within_budget
from services.trainer.use_cases.train import TrainingEnd, train
from tests.builders.trainings import SMALL, no_limit, train_in
from tests.fakes.trainer_services import services_of
from tests.fakes.trainer_world import TYPES, Crash, Silent, World, outcome_of


def reports(world: World, task_type: str) -> list[StepReport]:
    return [
        report
        for key in sorted(world.steps)
        for report in world.steps[key].step_reports
        if report.task_type == task_type
    ]


async def test_trn_7_a_helpful_edit_is_accepted_and_a_harmful_one_rejected() -> None:
    world = World()
    await train_in(world)
    current = world.texts("skills", world.manifest.current.skills)
    assert "GOOD" in current["action-reasoning.md"]
    assert "BAD" not in current["counting-problem.md"]
    assert reports(world, TYPES[0])[0].gate_action == "ACCEPT_CONFIRMED"
    assert reports(world, TYPES[0])[0].accepted_version == "v2"
    assert reports(world, TYPES[1])[0].gate_action == "REJECT_EXHAUSTED"


async def test_trn_7_two_accepts_of_a_step_keep_each_others_files() -> None:
    world = World()
    world.proposals = dict.fromkeys(TYPES[:2], "GOOD")
    await train_in(world)
    assert [each.version for each in world.versions["skills"]] == ["v1", "v2", "v3"]
    current = world.texts("skills", "v3")
    assert "GOOD" in current["action-reasoning.md"]
    assert "GOOD" in current["counting-problem.md"]


async def test_trn_7_a_rejected_type_gets_skip_reports_while_it_cools_down_and_no_repeated_gate() -> None:
    world = World()
    await train_in(world)
    assert [each.gate_action for each in reports(world, TYPES[1])] == [
        "REJECT_EXHAUSTED",
        "SKIP_COOLDOWN",
        "SKIP_REPEATED",
        "SKIP_REPEATED",
    ]


async def test_trn_7_a_type_without_change_gets_a_skip_report() -> None:
    world = World()
    await train_in(world)
    assert {each.gate_action for each in reports(world, TYPES[2])} <= {"SKIP_UNCHANGED", "SKIP_NO_CASES"}
    assert "SKIP_UNCHANGED" in {each.gate_action for each in reports(world, TYPES[2])}


async def test_evo_5_the_units_that_the_proposer_saw_do_not_judge_its_proposal() -> None:
    world = World()
    await train_in(world)
    decision = world.steps[0, 0]
    seen = {case for record in decision.evolution_records for case in _units(record.cases_json)}
    assert seen
    assert not seen & {row.unit_id for row in decision.evidence}


async def test_qua_11_only_counted_pairs_are_committed_since_others_depend_on_arrival() -> None:
    world = World()
    await train_in(world)
    pairs = [pair for each in world.steps.values() for pair in each.quadrants]
    assert pairs
    assert [pair.unit_id for pair in pairs] == [row.unit_id for each in world.steps.values() for row in each.evidence]


async def test_gat_9_no_test_unit_stands_on_a_ladder() -> None:
    world = World()
    await train_in(world)
    test_units = {unit.unit_id for unit in world.pools.of("test")}
    assert not test_units & {row.unit_id for each in world.steps.values() for row in each.evidence}


async def test_trn_8_the_start_is_evaluated_on_val_with_the_salt_of_epoch_0() -> None:
    world = World()
    await train_in(world)
    initial = world.epochs[-1].dual_metrics[0]
    assert (initial.version_kind, initial.skills_version, initial.measured_run_id) == (
        "initial",
        "v1",
        "run-1_e0_val_initial",
    )
    expected = [world.right("run-1:e0", q, world.texts("skills", "v1")) for q in _questions(world, "val")]
    assert initial.hard == pytest.approx(sum(expected) / len(expected))


async def test_trn_8_an_epochs_end_observes_diag_and_val_and_never_test() -> None:
    world = World()
    await train_in(world)
    observed = {each.unit_id for each in world.epochs[0].observations}
    assert {unit.unit_id for unit in world.pools.of("val")} <= observed
    assert not observed & {unit.unit_id for unit in world.pools.of("test")}
    assert len(observed) == len(world.pools.of("val")) + 24


async def test_trn_9_four_lines_an_epoch_and_no_pair_measured_twice() -> None:
    world = World()
    await train_in(world)
    assert [(line.line, line.how) for line in world.epochs[0].holdout_lines] == [
        ("baseline", "derived"),
        ("final", "measured"),
        ("best_hard", "pointer"),
    ]
    assert all(line.how != "measured" for line in world.epochs[1].holdout_lines)
    assert {run for run, _ in world.predictions if "_test_" in run} == {"run-1_e0_test_final"}


async def test_trn_13b_the_intent_is_written_before_anything_of_test_is_answered() -> None:
    world = World()
    await train_in(world)
    assert world.intents == [("v2", 0)]


async def test_trn_10_stops_early_by_epochs_without_a_better_best() -> None:
    world = World()
    world.proposals = {}
    end = await train_in(world, epochs=6, early_stop_patience=2)
    assert end == TrainingEnd(2, stopped_early=True)


async def test_evo_10_a_slow_update_that_hurts_is_reverted_and_both_are_recorded() -> None:
    world = World()
    world.slow_text = "BAD\n"
    world.proposals = {}
    await train_in(world)
    kinds = [(each.version_kind, each.skills_version) for each in world.epochs[1].dual_metrics]
    assert kinds == [("final", "v1"), ("slow_candidate", "v1+slow-update")]
    assert world.manifest.current.skills == "v1"


async def test_evo_10_a_slow_update_that_helps_is_published_and_becomes_the_best() -> None:
    world = World()
    world.slow_text = "GOOD\n"
    world.proposals = {}
    await train_in(world)
    assert [each.version for each in world.versions["skills"]] == ["v1", "v2"]
    assert world.manifest.best.hard is not None
    assert world.manifest.best.hard.skills == "v2"


async def test_gat_13_a_provisional_accept_that_hurts_later_is_rolled_back() -> None:
    world = World()
    world.provisional = True
    world.proposals = {TYPES[0]: "GOOD"}
    texts = world.texts("skills", "v1")
    lucky = world.right

    def unlucky_on_val(salt: Any, question: Any, skills: Any) -> bool:
        if salt == "run-1:e0" and "GOOD" in skills["action-reasoning.md"] and question.task_type == TYPES[0]:
            return False
        return lucky(salt, question, skills)

    world.right = unlucky_on_val  # type: ignore[method-assign]
    await train_in(world, epochs=1)
    assert world.epochs[0].changes[0].source == "rollback"
    assert world.texts("skills", world.manifest.current.skills) == texts
    (refused,) = state_from_json(world.checkpoints["run-1"].trainer_state_json).rejected[TYPES[0]]
    assert refused.reason == "ROLLED_BACK: by the fake's rule"
    assert [edit.content for edit in refused.edits] == ["GOOD"]


async def test_gat_10_two_types_with_one_file_the_first_has_it() -> None:
    world = World()
    world.proposals = dict.fromkeys(TYPES, "GOOD")
    for each in world.versions["skills"]:
        kept = tuple(file for file in each.files if file.name not in {"action-reasoning.md", "counting-problem.md"})
        world.versions["skills"] = [dataclasses.replace(each, files=kept)]
    await train_in(world, epochs=1, max_steps_per_epoch=1)
    assert reports(world, TYPES[0])[0].gate_action == "ACCEPT_CONFIRMED"
    assert reports(world, TYPES[1])[0].gate_action == "SKIP_TARGET_TAKEN"


async def test_trn_13b_an_endpoint_that_fails_every_call_scores_nothing() -> None:
    world = World()
    world.endpoint_down = True
    with pytest.raises(EndpointDown, match="connection refused"):
        await train_in(world)
    assert not world.steps
    assert not world.epochs


async def test_trn_11_another_run_id_draws_afresh_and_the_same_one_does_not() -> None:
    first, again, other = World(), World(), World()
    await train_in(first)
    await train_in(again)
    await train_in(other, run_id="run-2")
    assert outcome_of(first) == outcome_of(again)
    assert first.epochs[-1].dual_metrics[0].hard != other.epochs[-1].dual_metrics[0].hard


async def test_trn_11_a_changed_setting_is_refused_by_name() -> None:
    world = World()
    await train_in(world, epochs=1)
    with pytest.raises(WorkspaceProblem, match=r"settings differ: batch_size was 12 and is 13; restore them"):
        await train_in(world, epochs=1, batch_size=13, resume=True)


async def test_sto_9_a_checkpoint_of_another_form_is_refused_by_its_version() -> None:
    world = World()
    await train_in(world, epochs=1)
    written = dataclasses.replace(world.checkpoints["run-1"], schema_version=2, trainer_state_json='{"new": "form"}')
    world.checkpoints["run-1"] = written
    with pytest.raises(WorkspaceProblem, match=r"run run-1 has schema version 2, and this program reads 1"):
        await train_in(world, epochs=1, resume=True)


async def test_trn_11_a_taken_run_id_says_how_to_resume() -> None:
    world = World()
    await train_in(world, epochs=1)
    with pytest.raises(WorkspaceProblem, match="--resume run-1"):
        await train_in(world)


@pytest.mark.parametrize("after_effect", [False, True])
async def test_qua_11_killed_at_any_call_and_resumed_the_result_is_the_same(
    after_effect: bool,
) -> None:
    undisturbed = World(units_per_type=15)
    await train_in(undisturbed)
    expected = outcome_of(undisturbed)
    for crash_at in range(1, len(undisturbed.calls) + 1):
        world = World(units_per_type=15)
        world.crash_at, world.crash_after_effect = crash_at, after_effect
        with pytest.raises((Crash, BaseExceptionGroup)):
            await train_in(world)
        world.crash_at = None
        await train_in(world, resume="run-1" in world.runs)
        assert outcome_of(world) == expected, f"killed at call {crash_at}: {world.calls[crash_at - 1]}"


async def test_trn_6_a_unit_without_a_baseline_is_an_error_and_not_a_silent_skip() -> None:
    world = World()
    del world.predictions["baseline", world.pools.of("diag")[0].question_ids[0]]
    with pytest.raises(MissingResults, match="videotree baseline"):
        await train_in(world)


async def test_trn_6_a_small_type_is_dropped_from_training_but_stays_in_test() -> None:
    world = World()
    small = TYPES[2]
    units = [unit for unit in world.pools.units if unit.task_type != small or unit.pool == "test"]
    world.pools = dataclasses.replace(world.pools, units=tuple(units))
    await train_in(world, epochs=1)
    assert not reports(world, small)
    assert any(each.task_type == small for (run, _), each in world.predictions.items() if "_test_" in run)


async def test_trn_6_nothing_trainable_names_the_figures() -> None:
    with pytest.raises(NothingTrainable, match="trainable_min_units is 500"):
        await train_in(World(), trainable_min_units=500)


async def test_trn_12_a_budget_stops_between_pieces_and_the_run_resumes_to_the_same_result() -> None:
    undisturbed, world = World(), World()
    await train_in(undisturbed)
    config = TrainerConfig(**SMALL)
    run = await gather_run(services_of(world), Silent(), config.training_settings(), "lab", "run-1")
    checkpoint = await start_run(run, "")
    meter = Meter(run.services.runs, "lab", "run-1", lambda: 0.0)
    with pytest.raises(BudgetReached, match="--max-calls is 200"):
        await within_budget(BudgetLimits(max_calls=200), meter, lambda check: train(run, checkpoint, check))
    assert len(world.steps) < len(undisturbed.steps)
    await train_in(world, resume=True)
    assert outcome_of(world) == outcome_of(undisturbed)


async def test_a_round_cut_off_before_its_outcome_decides_nothing() -> None:
    world = World()
    services = services_of(world)

    async def cut_off(gate_round: Any) -> Any:
        for _ in ():
            yield _

    class CutOff:
        def __getattr__(self, name: str) -> Any:
            return cut_off if name == "validate" else getattr(services.gate, name)

    config = TrainerConfig(**SMALL)
    run = await gather_run(
        dataclasses.replace(services, gate=CutOff()), Silent(), config.training_settings(), "lab", "run-1"
    )
    with pytest.raises(ServiceFailed, match="without an outcome"):
        await train(run, await start_run(run, ""), no_limit)
    assert not world.steps


def _units(cases_json: str) -> list[str]:
    return [case["unit_id"] for case in json.loads(cases_json)]


def _questions(world: World, pool: str) -> list[Any]:
    wanted = {question for unit in world.pools.of(pool) for question in unit.question_ids}
    return [question for question in world.questions if question.question_id in wanted]
