"""`videotree train`: from a seed, a workspace or a broken-off run to a better skill set."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from services.trainer.cli import options
from services.trainer.cli.live_progress import LiveProgress
from services.trainer.cli.output import print_json, print_line
from services.trainer.cli.preparing import DEMO_SETTINGS, prepare_sample_seed, prepare_seed
from services.trainer.cli.running import Interrupted, people, run_command
from services.trainer.cli.session import Session, addresses_are_set, chosen_world, load_config, open_session
from services.trainer.config import TrainerConfig
from services.trainer.domain.errors import (
    BudgetReached,
    RunBroken,
    ServiceFailed,
    StackFailed,
    TrainerError,
    WorkspaceProblem,
)
from services.trainer.domain.runs import Run
from services.trainer.use_cases.open_run import TRAIN_KIND, gather_run, resume_run, start_run
from services.trainer.use_cases.ports import Services
from services.trainer.use_cases.spend import Meter, within_budget
from services.trainer.use_cases.summarize_run import summarize_run
from services.trainer.use_cases.train import train as train_run
from services.trainer.use_cases.training_run import TrainingRun


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """What the command line says besides settings."""

    seed: str | None
    demo: bool
    simulated: bool
    world: Path | None
    data: Path | None
    run_id: str | None
    resume: str | None
    workspace: str | None
    as_json: bool


def train(
    seed: Annotated[str | None, typer.Option("--seed", help="Seed from which a new workspace is made.")] = None,
    workspace: options.Workspace = None,
    run_id: Annotated[str | None, typer.Option("--run-id", help="Name of the run; another one draws afresh.")] = None,
    resume: Annotated[str | None, typer.Option("--resume", help="Run to go on with.")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", help="Passes over the diag pool.")] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="Diag units of one step.")] = None,
    max_steps_per_epoch: Annotated[int | None, typer.Option("--steps", help="Most steps of an epoch.")] = None,
    concurrency: Annotated[int | None, typer.Option("--concurrency", help="Questions in flight at once.")] = None,
    random_seed: Annotated[int | None, typer.Option("--random-seed", help="Seed of the batch order.")] = None,
    max_calls: Annotated[int | None, typer.Option("--max-calls", help="Stop after so many model calls.")] = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", help="Stop after so many tokens.")] = None,
    max_minutes: Annotated[float | None, typer.Option("--max-minutes", help="Stop after so many minutes.")] = None,
    demo: options.Demo = False,
    simulated: options.Simulated = False,
    world: options.World = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Train skills: rollout, diagnosis, edits, gate, epoch by epoch.

    Example: videotree train --demo

    Example: videotree train --seed nextqa --epochs 1 --max-calls 20000
    """
    overrides = {
        "seed_name": seed,
        "epochs": epochs,
        "batch_size": batch_size,
        "max_steps_per_epoch": max_steps_per_epoch,
        "concurrency": concurrency,
        "seed": random_seed,
        "max_calls": max_calls,
        "max_tokens": max_tokens,
        "max_minutes": max_minutes,
    }
    given = {name: value for name, value in overrides.items() if value is not None}
    chosen = TrainOptions(seed, demo, simulated, world, data, run_id, resume, workspace, as_json)
    preset = DEMO_SETTINGS if demo and not resume else {}
    run_command(_train(chosen, {**preset, **given}))


async def _train(chosen: TrainOptions, overrides: Mapping[str, object]) -> None:
    config = load_config(overrides)
    own_model = chosen.simulated or (chosen.demo and not addresses_are_set(config))
    world = chosen_world(simulated=own_model, world=chosen.world)
    async with open_session(config, data=chosen.data, world=world) as session:
        with LiveProgress() as progress:
            run, resuming = await session.while_serving(_open(session, chosen, config, progress))
            work = _Work(session, run, config, _hint(run, chosen))
            training = partial(_run_to_end, work, resuming=resuming)
            summary = await session.services.ledger.holding(run.workspace, run.run_id, training)
        path = await _write_summary(session.services, run, summary)
    if chosen.as_json:
        print_json({**summary, "summary": path})
    else:
        for line in closing_lines(summary, path):
            print_line(line)


async def _open(
    session: Session, chosen: TrainOptions, config: TrainerConfig, progress: LiveProgress
) -> tuple[TrainingRun, bool]:
    services = session.services
    if chosen.resume:
        workspace, saved = await find_run(services, chosen.resume, chosen.workspace)
        settings = with_saved_settings(config, saved).training_settings()
        return await gather_run(services, progress, settings, workspace, chosen.resume), True
    seed = await seed_to_train_from(session, chosen, progress)
    run_id = chosen.run_id or await _free_run_id(services, "demo" if chosen.demo else "run")
    workspace = chosen.workspace or run_id
    if seed:
        await _ensure_workspace(services, progress, workspace, seed)
    return await gather_run(services, progress, config.training_settings(), workspace, run_id), False


async def _ensure_workspace(services: Services, progress: LiveProgress, workspace: str, seed: str) -> None:
    if workspace not in await services.workspaces.names():
        await services.workspaces.create_from_seed(workspace, seed, force=False)
        progress.note(f"workspace {workspace} made from seed {seed}")
        return
    manifest, _ = await services.workspaces.get(workspace)
    if manifest.seed != seed:
        origin = f"seed {manifest.seed}" if manifest.seed else "no seed"
        raise WorkspaceProblem(
            f"workspace {workspace} was made from {origin}, not from {seed}; name another --workspace"
        )


@dataclass(frozen=True, slots=True)
class _Work:
    """A run and what it runs on; `hint` is the command that goes on with it."""

    session: Session
    run: TrainingRun
    config: TrainerConfig
    hint: str


async def _run_to_end(work: _Work, *, resuming: bool) -> dict[str, Any]:
    """Trains, and records how it ended whatever happens; returns the summary."""
    run, hint = work.run, work.hint
    began = time.monotonic()
    checkpoint = await (resume_run(run, git_sha()) if resuming else start_run(run, git_sha()))
    for dropped in run.trainability.dropped:
        run.progress.note(f"not trained: {dropped.task_type} ({dropped.reason})")
    run.progress.note(
        f"run {run.run_id}: {len(run.trainability.trainable)} types, {run.schedule.steps_per_epoch} steps an epoch, "
        f"{run.settings.epochs} epochs"
    )
    meter = Meter(run.services.runs, run.workspace, run.run_id, time.monotonic)
    try:
        limits = work.config.budget_limits()
        training = within_budget(limits, meter, lambda check: train_run(run, checkpoint, check))
        end = await work.session.while_serving(training, hint)
        early = ", stopped early" if end.stopped_early else ""
        await run.services.runs.finish(run.workspace, run.run_id, "finished", f"{end.epochs_done} epochs{early}")
        seconds = time.monotonic() - began
        return await summarize_run(run.services, run.workspace, run.run_id, seconds, end.stopped_early)
    except asyncio.CancelledError:
        await asyncio.shield(_finish(run, "stopped", "interrupted"))
        raise Interrupted(hint) from None
    except BudgetReached as stop:
        await _finish(run, "stopped", str(stop))
        raise BudgetReached(f"{stop}; {hint}") from None
    except StackFailed as failure:
        await _finish(run, "failed", str(failure))
        raise
    except TrainerError as error:
        await _finish(run, "failed", str(error))
        raise RunBroken(f"{error}; {hint}") from error


async def _finish(run: TrainingRun, status: str, detail: str) -> None:
    """Records why the run broke off; a store that is gone can't be told, and the run stays resumable without it."""
    with suppress(ServiceFailed):
        await run.services.runs.finish(run.workspace, run.run_id, status, detail)


async def _write_summary(services: Services, run: TrainingRun, summary: Mapping[str, Any]) -> str:
    content = orjson.dumps(summary, option=orjson.OPT_INDENT_2)
    return await services.workspaces.write_report(run.workspace, f"{run.run_id}/summary.json", content)


def closing_lines(summary: Mapping[str, Any], path: str) -> list[str]:
    """The last lines of a training: what was accepted and rejected, accuracy before and after, where to read on."""
    lines = [
        f"{'accepted' if str(gate['decision']).startswith('ACCEPT') else 'rejected'}  {gate['task_type']}: "
        f"{gate['decision']}  W {gate['w']}  L {gate['l']}  E {gate['e_value']:.3g}  "
        f"units {gate['n_used']}/{gate['n_planned']}  smallest gain it would have confirmed: {_gain(gate)}"
        for gate in summary["gates"]
    ]
    before, after = _percent(summary["val_accuracy_before"]), _percent(summary["val_accuracy_after"])
    lines.append(
        f"skills {summary['skills_version_before']} -> {summary['skills_version_after']}  "
        f"val accuracy {before} -> {after} (val selects among versions, so it is optimistic)"
    )
    if summary["prompts_version_before"] != summary["prompts_version_after"]:
        lines.append(f"prompts {summary['prompts_version_before']} -> {summary['prompts_version_after']}")
    final = [line for line in summary["test"] if line["line"] in {"baseline", "final"}][-2:]
    if final:
        lines.append("held-out test: " + ", ".join(f"{line['line']} {_percent(line['accuracy'])}" for line in final))
    lines.append(
        f"{summary['model_calls']} model calls, {summary['cache_hits']} from the cache, "
        f"{summary['wall_seconds']:.1f} s; report: videotree report {summary['run_id']}"
    )
    lines.append(f"summary: {path}")
    return lines


def with_saved_settings(config: TrainerConfig, saved: Run) -> TrainerConfig:
    """The settings of a run taken up again: what nobody sets now is as it was when the run began.

    What is set now, by flag, variable or file, stays, so that a changed setting is noticed and refused.
    """
    snapshot = orjson.loads(saved.config_json or b"{}")
    forgotten = {name: value for name, value in snapshot.items() if config.source_of(name) == "default"}
    return config.model_copy(update=forgotten)


def _hint(run: TrainingRun, chosen: TrainOptions) -> str:
    flags = [" --demo"] * chosen.demo + [" --simulated"] * chosen.simulated
    flags += [f" --world {chosen.world}"] if chosen.world else []
    data = f" --data {chosen.data}" if chosen.data else ""
    return f"go on with: videotree train --resume {run.run_id}{''.join(flags)}{data}"


async def seed_to_train_from(session: Session, chosen: TrainOptions, progress: LiveProgress) -> str:
    """The seed to train from, empty for a workspace that is ready; made now where none is there and none was named.

    A seed that the configuration names is made; one that the command line names must exist.
    """
    services, config = session.services, session.config
    if chosen.demo:
        return await prepare_sample_seed(session, progress)
    seeds = [seed.name for seed in await services.workspaces.seeds()]
    if config.seed_name in seeds or chosen.workspace:
        return config.seed_name
    if chosen.seed:
        known = f"there are: {', '.join(seeds)}" if seeds else "there is none yet"
        raise WorkspaceProblem(f"there is no seed {chosen.seed} ({known}); make it with: videotree seed create NAME")
    if config.seed_name:
        return await prepare_seed(session, progress, config.seed_name)
    if len(seeds) == 1:
        people.print(f"training from the only seed there is: {seeds[0]}", markup=False)
        return seeds[0]
    if not seeds:
        return await prepare_seed(session, progress, config.workspace)
    raise WorkspaceProblem(f"name the seed with --seed ({', '.join(seeds)}) or a workspace with --workspace")


async def _free_run_id(services: Services, stem: str) -> str:
    taken = set(await services.workspaces.names())
    for workspace in list(taken):
        taken |= {run.run_id for run in await services.runs.all(workspace, TRAIN_KIND)}
    number = 1
    while f"{stem}-{number}" in taken:
        number += 1
    return f"{stem}-{number}"


async def find_run(services: Services, run_id: str, workspace: str | None) -> tuple[str, Run]:
    """The workspace that holds a training run, and the run. Raises WorkspaceProblem when there is none."""
    names: Sequence[str] = [workspace] if workspace else await services.workspaces.names()
    for name in names:
        for run in await services.runs.all(name, TRAIN_KIND):
            if run.run_id == run_id:
                return name, run
    raise WorkspaceProblem(f"there is no training run {run_id}; see `videotree runs`")


def git_sha() -> str:
    """The commit that this program runs from; empty outside a checkout."""
    here = Path(__file__).resolve().parent
    command = ["git", "-C", str(here), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""


def _percent(value: float | None) -> str:
    return "not recorded" if value is None else f"{value:.1%}"


def _gain(gate: Mapping[str, Any]) -> str:
    gain = gate["detectable_gain"]
    return "none at this length" if gain is None else f"{gain:.2f}"
