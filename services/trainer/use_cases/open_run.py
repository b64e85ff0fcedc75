"""Opens a training run: gathers what it works on, checks it, and registers it or takes it up again (TRN-6, TRN-11)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from services.questions import Question
from services.skills import slug
from services.trainer.domain.checkpoint import Checkpoint, Fingerprints
from services.trainer.domain.errors import MissingResults, NothingTrainable, ServiceFailed, WorkspaceProblem
from services.trainer.domain.fingerprints import config_fingerprints, prompts_fingerprint
from services.trainer.domain.pools import Pools, PoolUnit
from services.trainer.domain.prompt_targets import prompt_targets
from services.trainer.domain.run_ids import is_run_id
from services.trainer.domain.runs import Run
from services.trainer.domain.schedule import Schedule
from services.trainer.domain.settings import TrainingSettings
from services.trainer.domain.trainability import check_trainability
from services.trainer.domain.trainer_state import TrainerState
from services.trainer.domain.unit_results import INFRA_STOP_REASONS, unit_outcomes
from services.trainer.domain.workspaces import Manifest
from services.trainer.use_cases.ports import Progress, Services
from services.trainer.use_cases.training_run import TrainingRun

TRAIN_KIND = "train"


async def gather_run(
    services: Services, progress: Progress, settings: TrainingSettings, workspace: str, run_id: str
) -> TrainingRun:
    """A run that is ready to start or to go on. Changes nothing.

    Raises NothingTrainable when no type has enough units, MissingResults when a unit of a trainable type has no
    baseline result, WorkspaceProblem when the workspace is not ready.
    """
    if not is_run_id(run_id):
        raise WorkspaceProblem(f"run id {run_id!r}: use lower-case letters, digits and hyphens, 64 at most")
    manifest, _ = await services.workspaces.get(workspace)
    if not manifest.pools_sha256:
        raise WorkspaceProblem(f"workspace {workspace} has no frozen split; run `videotree split` first")
    pools, _ = await services.workspaces.pools(workspace)
    diag, val, test = pools.of("diag"), pools.of("val"), pools.of("test")
    _require_free_names(settings, (*diag, *val))
    trainability = check_trainability(
        [unit.task_type for unit in diag],
        [unit.task_type for unit in val],
        settings.eval_min_per_class,
        settings.trainable_min_units,
        {unit.task_type for unit in pools.units},
    )
    if not trainability.trainable:
        reasons = "; ".join(f"{each.task_type}: {each.reason}" for each in trainability.dropped)
        raise NothingTrainable(f"no task type can be trained: {reasons}")
    keep = set(trainability.trainable)
    diag = tuple(unit for unit in diag if unit.task_type in keep)
    val = tuple(unit for unit in val if unit.task_type in keep)
    baseline = await _baseline(services, manifest, pools, [*diag, *val], test)
    return TrainingRun(
        services=services,
        progress=progress,
        settings=settings,
        run_id=run_id,
        workspace=workspace,
        dataset=pools.dataset,
        questions=await _questions(services, pools),
        diag=diag,
        val=val,
        test=test,
        baseline=baseline,
        trainability=trainability,
        schedule=Schedule(
            tuple(unit.unit_id for unit in diag),
            settings.batch_size,
            settings.epochs,
            settings.seed,
            settings.max_steps_per_epoch,
        ),
        fingerprints=await _fingerprints(services, settings, manifest, pools),
    )


async def start_run(run: TrainingRun, git_sha: str) -> Checkpoint:
    """Registers a new run and saves its first checkpoint. Raises WorkspaceProblem when the run id is taken."""
    taken = await run.services.runs.all(run.workspace, TRAIN_KIND)
    if any(each.run_id == run.run_id for each in taken):
        raise WorkspaceProblem(
            f"run {run.run_id} exists in workspace {run.workspace}: "
            f"go on with `videotree train --resume {run.run_id}`, or choose another --run-id"
        )
    checkpoint = run.checkpoint(0, 0, TrainerState())
    await run.services.ledger.save_checkpoint(run.workspace, checkpoint)
    await _register(run, git_sha)
    return checkpoint


async def resume_run(run: TrainingRun, git_sha: str) -> Checkpoint:
    """The checkpoint of a run. Raises WorkspaceProblem naming the settings that differ from those it was begun with."""
    try:
        checkpoint = await run.services.ledger.load_checkpoint(run.workspace, run.run_id, run.fingerprints)
    except ServiceFailed as failure:
        if failure.code != "FAILED_PRECONDITION":
            raise
        differing = await _differing_settings(run) or str(failure)
        raise WorkspaceProblem(
            f"run {run.run_id} can't be resumed, because its settings differ: {differing}; "
            "restore them, or start a new run"
        ) from failure
    await _register(run, git_sha)
    return checkpoint


async def _differing_settings(run: TrainingRun) -> str:
    """What the run was begun with and what it is asked to go on with; empty when pools or prompts differ instead."""
    saved = json.loads((await run.services.runs.get(run.workspace, run.run_id)).config_json or "{}")
    now = json.loads(json.dumps(run.settings.deciding()))
    names = sorted(name for name in saved.keys() & now.keys() if saved[name] != now[name])
    return ", ".join(f"{name} was {saved[name]} and is {now[name]}" for name in names)


async def _register(run: TrainingRun, git_sha: str) -> None:
    manifest, _ = await run.services.workspaces.get(run.workspace)
    await run.services.runs.register(
        run.workspace,
        Run(
            run_id=run.run_id,
            run_kind=TRAIN_KIND,
            git_sha=git_sha,
            config_json=json.dumps(run.settings.deciding(), sort_keys=True),
            skills_version=manifest.current.skills,
            prompts_version=manifest.current.prompts,
        ),
    )
    await run.services.workspaces.record_run(run.workspace, run.run_id)


async def _baseline(
    services: Services, manifest: Manifest, pools: Pools, trained: Sequence[PoolUnit], test: Sequence[PoolUnit]
) -> dict[str, bool]:
    baseline_run = manifest.baseline_run_id or pools.baseline_run_id
    answers = await services.runs.predictions(manifest.name, baseline_run)
    correct = {each.question_id: each.correct for each in answers if each.stop_reason not in INFRA_STOP_REASONS}
    outcomes = unit_outcomes([unit.unit for unit in (*trained, *test)], correct)
    missing = [unit.unit_id for unit in trained if unit.unit_id not in outcomes]
    if missing:
        raise MissingResults("units of diag and val have no baseline result", missing, "run `videotree baseline` again")
    return outcomes


async def _questions(services: Services, pools: Pools) -> Mapping[str, Question]:
    questions = {each.question_id: each for each in await services.library.questions(pools.dataset)}
    missing = [q for unit in pools.units for q in unit.question_ids if q not in questions]
    if missing:
        remedy = f"import the data set {pools.dataset} again"
        raise MissingResults("questions of the split are not in the library", missing, remedy)
    return questions


async def _fingerprints(
    services: Services, settings: TrainingSettings, manifest: Manifest, pools: Pools
) -> Fingerprints:
    prompts = await services.versions.get(manifest.name, "prompts", manifest.current.prompts)
    values = config_fingerprints(settings.deciding())
    in_force = prompts_fingerprint(prompts.texts)
    return Fingerprints({**values, "pools": pools.sha256 or manifest.pools_sha256, "prompts": in_force})


def _require_free_names(settings: TrainingSettings, units: Sequence[PoolUnit]) -> None:
    """Raises WorkspaceProblem when a prompt's gate would have the run ids of a task type's."""
    types = {slug(unit.task_type): unit.task_type for unit in units}
    for target in prompt_targets(settings.targets, settings.solver):
        if (taken := types.get(slug(target.gate_name))) is not None:
            raise WorkspaceProblem(
                f"the task type {taken!r} has the name under which gates of {target.file} are recorded; "
                "rename the type, or leave the prompt out of `targets`"
            )
