"""What a training leaves behind, step by step and epoch by epoch, in the world of tests/fakes/trainer_world.py."""

import dataclasses
from typing import Any

import pytest

from services.trainer.config import TrainerConfig
from services.trainer.domain.answering import AnswerJob
from services.trainer.domain.diagnoses import EvidenceScore
from services.trainer.domain.errors import WorkspaceProblem
from services.trainer.domain.gate_round import GateRound
from services.trainer.use_cases.open_run import gather_run, resume_run, start_run
from services.trainer.use_cases.ports import Services
from services.trainer.use_cases.train import train
from tests.builders.trainings import SMALL, no_limit, train_in
from tests.fakes.trainer_services import services_of
from tests.fakes.trainer_world import TYPES, Crash, Silent, World

WRITES = ("commit_step", "commit_epoch", "save_checkpoint", "put_holdout_eval", "publish", "set_current")


class Watched:
    """A port that hands on every call, after `seen` was told its name and arguments."""

    def __init__(self, port: Any, seen: Any) -> None:
        self._port, self._seen = port, seen

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._seen(name, args)
            return method(*args, **kwargs)

        return call


def watching(world: World, seen: Any) -> Services:
    services = services_of(world)
    ports = {each.name: Watched(getattr(services, each.name), seen) for each in dataclasses.fields(services)}
    return Services(**ports)


async def train_watched(world: World, seen: Any, *, resume: bool = False, **settings: Any) -> None:
    config = TrainerConfig(**{**SMALL, **settings})
    run = await gather_run(watching(world, seen), Silent(), config.training_settings(), "lab", "run-1")
    await train(run, await (resume_run(run, "") if resume else start_run(run, "")), no_limit)


async def test_trn_7_a_step_writes_once_and_last_after_all_types_were_proposed_and_judged_together() -> None:
    calls: list[str] = []
    await train_watched(World(), lambda name, _: calls.append(name), epochs=1, max_steps_per_epoch=1)
    step = calls[calls.index("clear_step") : calls.index("commit_epoch", calls.index("clear_step"))]
    assert step.count("validate") == 1
    assert [name for name in step if name in (*WRITES, "propose", "validate")] == [
        *["propose"] * len(TYPES),
        "validate",
        "commit_step",
        "put_holdout_eval",
    ]


async def test_trn_7_every_candidate_of_a_step_is_judged_against_the_versions_at_its_start() -> None:
    rounds: list[GateRound] = []
    world = World()
    world.proposals = dict.fromkeys(TYPES[:2], "GOOD")
    await train_watched(world, lambda name, args: rounds.extend(args) if name == "validate" else None)
    specs = rounds[0].specs
    assert rounds[0].skills_version == "v1"
    assert [spec.task_type for spec in specs] == list(TYPES[:2])
    assert len({spec.target_file for spec in specs}) == len(specs)
    assert all(spec.candidate_text == f"{spec.task_type}: look.\nGOOD\n" for spec in specs)


async def test_inf_6_an_epoch_draws_under_its_own_salt_and_a_resumed_one_under_the_same() -> None:
    def salts(jobs: list[AnswerJob]) -> set[tuple[str, str | None]]:
        return {(job.run_id, job.salt) for job in jobs}

    undisturbed: list[AnswerJob] = []
    await train_watched(World(), lambda name, args: undisturbed.extend(args) if name == "answer" else None)
    assert {salt for run, salt in salts(undisturbed) if run.startswith("run-1_e0")} == {"run-1:e0"}
    assert {salt for run, salt in salts(undisturbed) if run.startswith("run-1_e1")} == {"run-1:e1"}

    world, jobs = World(), list[AnswerJob]()
    world.crash_at = 40
    with pytest.raises((Crash, BaseExceptionGroup)):
        await train_watched(world, lambda name, args: jobs.extend(args) if name == "answer" else None)
    before = len(jobs)
    world.crash_at = None
    await train_watched(world, lambda name, args: jobs.extend(args) if name == "answer" else None, resume=True)
    assert 0 < before < len(jobs)
    assert salts(jobs) == salts(undisturbed)


async def test_trn_8_best_by_hard_and_by_mixed_may_be_two_versions_and_the_test_has_a_line_for_each() -> None:
    world = World()
    world.slow_text, world.proposals = "GOOD\n", {}
    services = services_of(world)

    async def scores(workspace: str, run_id: str, dataset: str, question_ids: Any) -> Any:
        quality = 0.0 if run_id.endswith("val_slow_candidate") else 1.0
        for question in question_ids:
            yield EvidenceScore(question, quality, "")

    class Judging:
        def __getattr__(self, name: str) -> Any:
            return scores if name == "score_evidence" else getattr(services.evolver, name)

    config = TrainerConfig(**{**SMALL, "soft_score": True, "mixed_hard_weight": 0.1})
    run = await gather_run(
        dataclasses.replace(services, evolver=Judging()), Silent(), config.training_settings(), "lab", "run-1"
    )
    await train(run, await start_run(run, ""), no_limit)
    hard, mixed = world.manifest.best.hard, world.manifest.best.mixed
    assert hard is not None
    assert mixed is not None
    assert (hard.skills, mixed.skills) == ("v2", "v1")
    metrics = [metric for each in world.epochs.values() for metric in each.dual_metrics]
    for metric in metrics:
        assert metric.hard is not None
        soft = 0.0 if metric.version_kind == "slow_candidate" else 1.0
        assert metric.soft == soft
        assert metric.mixed == pytest.approx(0.1 * metric.hard + 0.9 * soft)
    assert [(line.line, line.skills_version) for line in world.epochs[1].holdout_lines] == [
        ("baseline", "v1"),
        ("final", "v2"),
        ("best_hard", "v2"),
        ("best_mixed", "v1"),
    ]
    assert [line.how for line in world.epochs[1].holdout_lines] == ["derived", "measured", "pointer", "pointer"]


async def test_trn_8_an_epoch_is_observed_once_however_often_its_end_was_begun() -> None:
    undisturbed = World()
    await train_in(undisturbed)
    ends = [place for place, name in enumerate(undisturbed.calls, 1) if name.endswith("commit_epoch")]
    for crash_after_effect in (False, True):
        world = World()
        world.crash_at, world.crash_after_effect = ends[1], crash_after_effect
        with pytest.raises((Crash, BaseExceptionGroup)):
            await train_in(world)
        world.crash_at = None
        await train_in(world, resume=True)
        assert world.estimates == undisturbed.estimates
        counts = {each.observation_count for each in world.estimates.values()}
        assert counts == {2}


async def test_trn_9_after_a_resume_each_pair_was_measured_once_and_its_origin_is_the_same() -> None:
    def table(world: World) -> list[tuple[str, str, str]]:
        return sorted((each.skills_version, each.how, each.measured_run_id) for each in world.holdouts.values())

    undisturbed = World()
    await train_in(undisturbed)
    measured = next(n for n, name in enumerate(undisturbed.calls, 1) if name.endswith("put_holdout_eval"))
    for crash_at in (measured, measured + 1, measured + 2):
        world, jobs = World(), list[AnswerJob]()
        world.crash_at, world.crash_after_effect = crash_at, True
        with pytest.raises((Crash, BaseExceptionGroup)):
            await train_in(world)
        world.crash_at = None
        await train_watched(
            world, lambda name, args, jobs=jobs: jobs.extend(args) if name == "answer" else None, resume=True
        )
        assert table(world) == table(undisturbed) == [("v1", "derived", ""), ("v2", "measured", "run-1_e0_test_final")]
        assert len([job for job in jobs if "_test_" in job.run_id]) <= 1


async def test_trn_10_a_better_best_starts_the_count_of_epochs_anew() -> None:
    world = World()
    world.slow_text, world.proposals = "GOOD\n", {}
    await train_in(world, epochs=8, early_stop_patience=2)
    best = world.manifest.best.hard
    assert best is not None
    assert max(world.epochs) == best.epoch + 2


@pytest.mark.parametrize("changed", ["pools", "prompts"])
async def test_trn_11_a_changed_pool_or_prompt_is_refused_by_name(changed: str) -> None:
    world = World()
    await train_in(world, epochs=1)
    if changed == "pools":
        world.pools = dataclasses.replace(world.pools, sha256="other")
    else:
        first, skill = world.versions["prompts"][0], world.versions["skills"][0].files[0]
        edited = dataclasses.replace(skill, name="agent.system.md", text="Answer quickly.\n")
        world.versions["prompts"] = [dataclasses.replace(first, files=(edited,))]
    with pytest.raises(WorkspaceProblem, match=changed):
        await train_in(world, epochs=1, resume=True)
