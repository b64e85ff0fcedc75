"""The training loop: from a checkpoint to the end of the last epoch (TRN-7 to TRN-12)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from services.trainer.domain.best import epoch_scores
from services.trainer.domain.checkpoint import Checkpoint
from services.trainer.domain.stopping import should_stop
from services.trainer.use_cases.end_epoch import end_epoch, evaluate_start
from services.trainer.use_cases.run_step import run_step
from services.trainer.use_cases.training_run import TrainingRun


@dataclass(frozen=True, slots=True)
class TrainingEnd:
    """How a training ended: after all epochs, or early because no epoch brought a better best."""

    epochs_done: int
    stopped_early: bool


async def train(run: TrainingRun, checkpoint: Checkpoint, require_room: Callable[[], Awaitable[None]]) -> TrainingEnd:
    """Trains from `checkpoint` to the end. `require_room` is awaited before each piece of work and may raise."""
    state = checkpoint.state
    if not await _scores(run):
        await require_room()
        await evaluate_start(run, state)
    epoch, step = checkpoint.epoch, checkpoint.step
    while epoch < run.settings.epochs:
        if should_stop(await _scores(run), run.settings.early_stop_patience):
            return TrainingEnd(epoch, stopped_early=True)
        while step < run.schedule.steps_per_epoch:
            await require_room()
            decision, state = await run_step(run, run.schedule.position(epoch, step), state)
            for report in decision.step_reports:
                run.progress.note(f"step {epoch}.{step}  {report.task_type}: {report.gate_action}")
            step += 1
        await require_room()
        _, state = await end_epoch(run, epoch, state, require_room)
        epoch, step = epoch + 1, 0
    return TrainingEnd(epoch, stopped_early=False)


async def _scores(run: TrainingRun) -> list[float]:
    return epoch_scores(await run.services.ledger.dual_metrics(run.workspace, run.run_id))
