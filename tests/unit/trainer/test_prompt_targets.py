"""EVO-12 in training: prompts take turns after the skills' rounds; an accepted one is in force in the next step."""

import json
from typing import Any

import pytest

from services.runtime.config import ConfigError, load_section
from services.trainer.config import TrainerConfig
from services.trainer.domain.errors import ServiceFailed, WorkspaceProblem
from services.trainer.domain.fingerprints import config_fingerprints, prompts_fingerprint
from services.trainer.domain.prompt_targets import PromptTarget, confirmed_only, due_prompt, prompt_targets
from services.trainer.domain.settings import TrainingSettings
from services.trainer.domain.step_rows import StepReport
from services.trainer.domain.trainer_state import TrainerState, state_from_json, state_to_json
from services.trainer.use_cases.open_run import gather_run
from services.trainer.use_cases.plan_run import plan_run
from services.trainer.use_cases.summarize_run import summarize_run
from tests.builders.trainings import SMALL, train_in
from tests.fakes.trainer_services import services_of
from tests.fakes.trainer_world import SYSTEM_PROMPT, TYPES, Crash, Silent, World, outcome_of, version

SYSTEM = "prompt agent.system"
EVOLVED: dict[str, Any] = {"targets": ("skills", "system"), "prompt_every": 1}
FILES = {SYSTEM_PROMPT: "You answer.\n", "tools.extract.md": "e\n", "tools.verify.md": "v\n", "tools.observe.md": "o\n"}


def prompted_world(proposals: dict[str, str], units_per_type: int = 20) -> World:
    world = World(units_per_type)
    world.versions["prompts"] = [version("prompts", "v1", "", FILES)]
    world.proposals = proposals
    return world


def prompt_reports(world: World) -> list[tuple[tuple[int, int], StepReport]]:
    return [
        (key, report)
        for key in sorted(world.steps)
        for report in world.steps[key].step_reports
        if report.task_type.startswith("prompt ")
    ]


def settings(**changes: Any) -> TrainingSettings:
    return TrainerConfig(**changes).training_settings()


async def test_evo_12_by_default_only_skills_are_evolved() -> None:
    world = prompted_world({SYSTEM: "GOOD"})
    await train_in(world)
    assert prompt_reports(world) == []
    assert {request.target_kind for request in world.asked} == {"skill"}
    assert world.manifest.current.prompts == "v1"


async def test_evo_12_an_accepted_prompt_is_published_and_in_force_in_the_next_step() -> None:
    world = prompted_world({SYSTEM: "GOOD"})
    await train_in(world, **EVOLVED)
    (first, report), *_ = prompt_reports(world)
    assert (first, report.gate_action, report.accepted_version) == ((0, 0), "ACCEPT_CONFIRMED", "v2")
    decision = world.steps[first]
    assert [(change.kind, dict(change.overrides)) for change in decision.changes] == [
        ("prompts", {SYSTEM_PROMPT: "You answer.\nGOOD\n"})
    ]
    assert decision.changes[0].trigger_run == "run-1_e0_s0_gate_prompt-agent-system"
    (record,) = [each for each in decision.evolution_records if each.target == SYSTEM_PROMPT]
    assert (record.status, record.base_version, record.accepted_version) == ("accepted", "v1", "v2")
    assert "+GOOD" in record.unified_diff
    assert world.manifest.current.prompts == "v2"
    before, after = world.in_force("v1", "v1"), world.in_force("v1", "v2")
    rollout = [each for each in world.questions if ("run-1_e0_s1", each.question_id) in world.predictions]
    answered = [world.predictions["run-1_e0_s1", each.question_id].correct for each in rollout]
    assert answered == [world.right("run-1:e0", each, after) for each in rollout]
    assert answered != [world.right("run-1:e0", each, before) for each in rollout]
    metrics = [metric for epoch in world.epochs.values() for metric in epoch.dual_metrics]
    assert [(each.version_kind, each.prompts_version) for each in metrics][:2] == [("initial", "v1"), ("final", "v2")]
    assert world.manifest.best.hard is not None
    assert world.manifest.best.hard.prompts == "v2"
    assert ("v1", "v2") in world.holdouts, "held-out results are remembered by both versions"


async def test_evo_12_a_prompt_is_judged_by_units_of_all_types_none_of_which_the_proposer_saw() -> None:
    world = prompted_world({SYSTEM: "BAD"})
    await train_in(world, **EVOLVED, epochs=1)
    (request,) = [each for each in world.asked if each.target_kind == "system"][:1]
    assert request.case_pack.target_file == SYSTEM_PROMPT
    assert request.current_text == FILES[SYSTEM_PROMPT]
    judged = [row for row in world.steps[0, 0].evidence if row.task_type == SYSTEM]
    kinds = {unit.unit_id: unit.task_type for unit in world.pools.units}
    assert {kinds[row.unit_id] for row in judged} == set(TYPES)
    assert {row.unit_id for row in judged} & set(request.case_pack.unit_ids) == set()
    assert {unit.pool for unit in world.pools.units if unit.unit_id in {row.unit_id for row in judged}} <= {
        "diag",
        "val",
    }


async def test_evo_12_a_refused_prompt_cools_down_is_remembered_and_stays_out_of_force() -> None:
    world = prompted_world({SYSTEM: "BAD"})
    await train_in(world, **EVOLVED, gate_cooldown=1)
    actions = {key: report.gate_action for key, report in prompt_reports(world)}
    assert actions[0, 0] == "REJECT_EXHAUSTED"
    assert (0, 1) not in actions, "it cools down"
    assert actions[1, 0] == "SKIP_REPEATED"
    assert world.manifest.current.prompts == "v1"


async def test_evo_12_no_prompt_is_tried_in_a_step_that_accepts_a_skill() -> None:
    world = prompted_world({TYPES[0]: "GOOD", SYSTEM: "GOOD"})
    await train_in(world, **EVOLVED)
    by_step = dict(prompt_reports(world))
    accepted = [key for key in world.steps if any(c.kind == "skills" for c in world.steps[key].changes)]
    assert accepted
    for key in accepted:
        assert by_step[key].gate_action == "SKIP_SKILL_ACCEPTED"
        assert {change.kind for change in world.steps[key].changes} == {"skills"}
    assert world.manifest.current.prompts == "v2", "its turn came in a later step"


async def test_evo_12_a_prompt_must_be_confirmed_while_a_skill_may_be_provisional() -> None:
    world = prompted_world({TYPES[1]: "BAD", SYSTEM: "BAD"})
    await train_in(world, **EVOLVED, epochs=1, e_confirm=20.0)
    verdicts = [
        (report.task_type, json.loads(report.verdict_json)["parameters"])
        for step in world.steps.values()
        for report in step.step_reports
        if report.verdict_json
    ]
    bars = {name: parameters["e_provisional"] for name, parameters in verdicts}
    assert bars[TYPES[1]] == 3.0
    assert bars[SYSTEM] == pytest.approx(20.0)
    assert bars[SYSTEM] < 20.0


async def test_evo_12_without_skills_among_the_targets_no_skill_is_asked_for() -> None:
    world = prompted_world({TYPES[0]: "GOOD", SYSTEM: "GOOD"})
    world.slow_text = "GOOD"
    await train_in(world, targets=("system",), prompt_every=1)
    assert {request.target_kind for request in world.asked} == {"system"}
    assert world.manifest.current.skills == "v1"
    assert world.steps[0, 0].step_reports[0].gate_action == "SKIP_NOT_A_TARGET"


async def test_gat_13_a_pair_across_two_prompts_says_nothing_about_a_skill_so_the_predecessor_answers_anew() -> None:
    world = prompted_world({TYPES[0]: "GOOD", SYSTEM: "GOOD"})
    world.provisional = True
    await train_in(world, **EVOLVED, epochs=1)
    assert world.manifest.current.prompts == "v2"
    probation = state_from_json(world.checkpoints["run-1"].trainer_state_json).probation[TYPES[0]]
    salt = "run-1_e0_val_probation_action-reasoning"
    texts = {**world.in_force("v2", "v2"), probation.target_file: probation.predecessor_text}
    asked = {question.question_id: question for question in world.questions}
    assert len(probation.pairs) == 8
    assert [old for _, old, _ in probation.pairs] == [world.right(salt, asked[u], texts) for u, _, _ in probation.pairs]


@pytest.mark.parametrize("after_effect", [False, True])
async def test_qua_11_killed_at_any_call_and_resumed_evolved_prompts_are_the_same(after_effect: bool) -> None:
    def fresh() -> World:
        return prompted_world({TYPES[0]: "GOOD", SYSTEM: "GOOD"}, units_per_type=10)

    chosen = {**EVOLVED, "batch_size": 8, "trainable_min_units": 4, "eval_min_per_class": 1}
    undisturbed = fresh()
    await train_in(undisturbed, **chosen)
    assert undisturbed.manifest.current.prompts == "v2"
    expected = outcome_of(undisturbed)
    for crash_at in range(1, len(undisturbed.calls) + 1):
        world = fresh()
        world.crash_at, world.crash_after_effect = crash_at, after_effect
        with pytest.raises((Crash, BaseExceptionGroup)):
            await train_in(world, **chosen)
        world.crash_at = None
        await train_in(world, resume="run-1" in world.runs, **chosen)
        assert outcome_of(world) == expected, f"killed at call {crash_at}: {world.calls[crash_at - 1]}"


async def test_trn_11_prompts_that_someone_else_changed_are_refused_and_the_runs_own_are_not() -> None:
    world = prompted_world({SYSTEM: "GOOD"})
    await train_in(world, **EVOLVED, epochs=2)
    assert world.manifest.current.prompts == "v2"
    await train_in(world, **EVOLVED, epochs=2, resume=True)
    world.versions["prompts"][1] = version("prompts", "v2", "v1", {**FILES, SYSTEM_PROMPT: "Another's.\n"})
    with pytest.raises(WorkspaceProblem, match="prompts"):
        await train_in(world, **EVOLVED, epochs=2, resume=True)


async def test_a_type_named_as_a_prompts_gate_is_refused_only_where_they_would_meet() -> None:
    world = prompted_world({})
    clashing = [
        type(unit)(unit.unit_id, "Prompt agent-system", unit.video_id, unit.question_ids, unit.pool)
        if unit.task_type == TYPES[0]
        else unit
        for unit in world.pools.units
    ]
    world.pools = type(world.pools)(world.pools.baseline_run_id, world.pools.dataset, tuple(clashing), "pools-sha")
    with pytest.raises(WorkspaceProblem, match="Prompt agent-system"):
        await train_in(world, **EVOLVED)


async def test_trn_12_the_plan_counts_a_prompts_turns_only_where_prompts_are_targets() -> None:
    async def planned(**changes: Any) -> dict[str, int]:
        run = await gather_run(services_of(prompted_world({})), Silent(), settings(**SMALL, **changes), "lab", "plan")
        plan, _ = await plan_run(run, "baseline")
        return {work.name: work.questions for work in plan.work}

    plain, evolved = await planned(), await planned(targets=("skills", "system"), prompt_every=2)
    added = {"prompt gate candidates": 2 * 1 * 48, "prompt gate base": 2 * 48}
    assert evolved == plain | added, "one turn in the two steps of an epoch, 48 units of diag and val"
    alone = await planned(targets=("system",))
    assert (alone["gate candidates"], alone["gate base"]) == (0, 0)


async def test_trn_13_a_summary_names_the_prompts_before_and_after_and_lists_their_gates() -> None:
    world = prompted_world({SYSTEM: "GOOD"})
    await train_in(world, **EVOLVED, epochs=1)
    summary = await summarize_run(services_of(world), "lab", "run-1", 1.0, False)
    assert (summary["prompts_version_before"], summary["prompts_version_after"]) == ("v1", "v2")
    gates = {gate["task_type"]: gate["accepted_version"] for gate in summary["gates"]}
    assert gates[SYSTEM] == "v2"
    assert {line["line"]: line["prompts_version"] for line in summary["test"]}["final"] == "v2"


def test_evo_12_prompts_take_turns_every_so_many_steps_and_cooling_ones_leave_theirs_to_the_next() -> None:
    targets = prompt_targets(("skills", "system", "tools"), "tree")
    names = [target.file for target in targets]
    assert names == ["agent.system.md", "tools.extract.md", "tools.verify.md", "tools.observe.md"]
    turns = [due_prompt(targets, 2, {}, step) for step in range(12)]
    assert [None if turn is None else names.index(turn.file) for turn in turns] == [
        None, 0, None, 1, None, 2, None, 3, None, 0, None, 1,
    ]  # fmt: skip
    cooling = {"prompt agent.system": 4, "prompt tools.verify": 6}
    assert due_prompt(targets, 2, cooling, 1) == targets[1]
    assert due_prompt(targets, 2, cooling, 5) == targets[3]
    assert due_prompt(targets, 1, {target.gate_name: 9 for target in targets}, 3) is None
    assert due_prompt((), 1, {}, 0) is None


def test_evo_12_the_targets_are_those_that_the_solver_reads() -> None:
    assert prompt_targets(("skills",), "tree") == ()
    assert prompt_targets(("system",), "direct") == (PromptTarget("agent.direct.md", "system"),)
    assert {target.kind for target in prompt_targets(("tools",), "tree")} == {"tool"}
    with pytest.raises(ConfigError, match="direct solver uses no tools"):
        load_section(TrainerConfig, "trainer", {"targets": ["tools"], "solver": "direct"})


def test_evo_12_targets_are_checked_ordered_and_part_of_the_fingerprints(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings().targets == ("skills",)
    assert settings(targets=["tools", "skills", "tools"]).targets == ("skills", "tools")
    monkeypatch.setenv("VIDEOTREE_TRAINER_TARGETS", '["system", "skills"]')
    assert load_section(TrainerConfig, "trainer").training_settings().targets == ("skills", "system")
    monkeypatch.delenv("VIDEOTREE_TRAINER_TARGETS")
    for wrong in ([], ["skill"], "skills"):
        with pytest.raises(ConfigError, match="targets"):
            load_section(TrainerConfig, "trainer", {"targets": wrong})
    plain, evolved = (config_fingerprints(settings(**changes).deciding()) for changes in ({}, EVOLVED))
    assert {name for name in plain if plain[name] != evolved[name]} == {"config.targets", "config.prompt_every"}


async def test_trn_11_other_targets_are_refused_by_name() -> None:
    world = prompted_world({})
    await train_in(world, epochs=1)
    with pytest.raises(
        (WorkspaceProblem, ServiceFailed), match=r"targets was \['skills'\] and is \['skills', 'system'\]"
    ):
        await train_in(world, epochs=1, targets=("skills", "system"), resume=True)


def test_the_state_keeps_the_fingerprint_of_the_runs_own_prompts() -> None:
    state = TrainerState(prompts_fingerprint=prompts_fingerprint(FILES))
    assert state_from_json(state_to_json(state)) == state
    assert prompts_fingerprint(FILES) != prompts_fingerprint({**FILES, SYSTEM_PROMPT: "You answer well.\n"})


def test_a_bar_that_only_confirms_keeps_everything_else() -> None:
    usual = settings().verdict_parameters
    strict = confirmed_only(usual)
    assert usual.e_provisional < strict.e_provisional < strict.e_confirm == usual.e_confirm
    assert (strict.w_net_min, strict.delta_min, strict.mixture) == (usual.w_net_min, usual.delta_min, usual.mixture)
