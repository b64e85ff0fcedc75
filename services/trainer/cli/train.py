"""`videotree train`: from a seed, a workspace or a broken-off run to a better skill set."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from services.trainer.cli import options
from services.trainer.cli.closing_lines import closing_lines
from services.trainer.cli.live_progress import LiveProgress
from services.trainer.cli.output import print_json, print_line
from services.trainer.cli.preparing import DEMO_SETTINGS
from services.trainer.cli.resuming import resume_hint, with_saved_settings
from services.trainer.cli.running import Interrupted, run_command
from services.trainer.cli.session import Session, addresses_are_set, chosen_world, load_config, open_session
from services.trainer.cli.starting import TrainOptions, ensure_workspace, seed_to_train_from
from services.trainer.cli.training_runs import find_run, free_run_id
from services.trainer.config import TrainerConfig
from services.trainer.domain.errors import (
    BudgetReached,
    RunBroken,
    ServiceFailed,
    StackFailed,
    TrainerError,
)
from services.trainer.use_cases.open_run import gather_run, resume_run, start_run
from services.trainer.use_cases.ports import Services
from services.trainer.use_cases.spend import Meter, within_budget
from services.trainer.use_cases.summarize_run import summarize_run
from services.trainer.use_cases.train import train as train_run
from services.trainer.use_cases.training_run import TrainingRun


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
    run_command(_train(chosen, preset, given))


async def _train(chosen: TrainOptions, preset: Mapping[str, object], flags: Mapping[str, object]) -> None:
    config = load_config({**preset, **flags})
    own_model = chosen.simulated or (chosen.demo and not addresses_are_set(config))
    world = chosen_world(simulated=own_model, world=chosen.world)
    async with open_session(config, data=chosen.data, world=world) as session:
        with LiveProgress() as progress:
            run, resuming = await session.while_serving(_open(session, chosen, config, progress))
            work = _Work(session, run, config, resume_hint(run.run_id, chosen, flags))
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
    run_id = chosen.run_id or await free_run_id(services, "demo" if chosen.demo else "run")
    workspace = chosen.workspace or run_id
    if seed:
        await ensure_workspace(services, progress, workspace, seed)
    return await gather_run(services, progress, config.training_settings(), workspace, run_id), False


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
    except Exception as error:
        await _finish(run, "failed", f"unexpected {type(error).__name__}: {error}")
        raise


async def _finish(run: TrainingRun, status: str, detail: str) -> None:
    """Records why the run broke off; a store that is gone can't be told, and the run stays resumable without it."""
    with suppress(ServiceFailed):
        await run.services.runs.finish(run.workspace, run.run_id, status, detail)


async def _write_summary(services: Services, run: TrainingRun, summary: Mapping[str, Any]) -> str:
    content = orjson.dumps(summary, option=orjson.OPT_INDENT_2)
    return await services.workspaces.write_report(run.workspace, f"{run.run_id}/summary.json", content)


def git_sha() -> str:
    """The commit that this program runs from; empty outside a checkout."""
    here = Path(__file__).resolve().parent
    command = ["git", "-C", str(here), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""
