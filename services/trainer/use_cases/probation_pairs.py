"""Paired results of a file on probation against its predecessor, at an epoch's end (GAT-13).

Both sides are fresh draws that had no part in the accept. The file's is the epoch's own val evaluation. The
predecessor's is the evaluation before it, where that one still held the predecessor's text; else the predecessor
answers as many units as are missing to `probation_units`, under a run id and salt of the epoch's own. So no draw
serves twice, and a repeated epoch's end gets the same ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from services.trainer.domain import run_ids
from services.trainer.domain.answering import LOST_AT_START, Answer
from services.trainer.domain.errors import EndpointDown
from services.trainer.domain.evaluations import DualMetric
from services.trainer.domain.pools import PoolUnit
from services.trainer.domain.trainer_state import Probation
from services.trainer.domain.versions import Version
from services.trainer.use_cases.evaluate import Evaluation, outcomes_of, sound_answers
from services.trainer.use_cases.training_run import TrainingRun


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The versions in force at the end of `epoch`, and `final`, how they did on val."""

    epoch: int
    skills: Version
    prompts_version: str
    final: Evaluation


@dataclass(frozen=True, slots=True)
class FreshPairs:
    """(unit id, predecessor right, file right) in the pool's order; `predecessor_run` holds the former's answers."""

    predecessor_run: str
    pairs: tuple[tuple[str, bool, bool], ...]


async def fresh_pairs(
    run: TrainingRun, end: EpochEnd, probation: Probation, require_room: Callable[[], Awaitable[None]]
) -> FreshPairs:
    """The pairs that this epoch's end adds; units that ended INFRA on either side are left out.

    Awaits `require_room` before it draws. Raises EndpointDown when the draw can't be judged by.
    """
    current = end.final.outcomes
    units = [unit for unit in run.val if unit.task_type == probation.task_type and unit.unit_id in current]
    before = await _evaluation_of_predecessor(run, end, probation)
    if before is not None:
        predecessor_run = before.measured_run_id
        old = outcomes_of(units, await run.services.runs.predictions(run.workspace, predecessor_run))
    else:
        predecessor_run = run_ids.probation_run(run.run_id, end.epoch, probation.task_type)
        units = units[: run.settings.probation_units - len(probation.pairs)]
        await require_room()
        old = outcomes_of(units, await _predecessor_answers(run, end, probation, units, predecessor_run))
    pairs = tuple((u.unit_id, old[u.unit_id], current[u.unit_id]) for u in units if u.unit_id in old)
    return FreshPairs(predecessor_run, pairs)


async def _evaluation_of_predecessor(run: TrainingRun, end: EpochEnd, probation: Probation) -> DualMetric | None:
    """The evaluation before this epoch's, if it differs from it in the file on probation and not in the prompts."""
    metrics = await run.services.ledger.dual_metrics(run.workspace, run.run_id)
    wanted = ("initial", -1) if end.epoch == 0 else ("final", end.epoch - 1)
    before = next((each for each in metrics if (each.version_kind, each.epoch) == wanted), None)
    if before is None or before.prompts_version != end.prompts_version:
        return None
    skills = await run.services.versions.get(run.workspace, "skills", before.skills_version)
    return before if skills.texts.get(probation.target_file) == probation.predecessor_text else None


async def _predecessor_answers(
    run: TrainingRun, end: EpochEnd, probation: Probation, units: Sequence[PoolUnit], run_id: str
) -> Sequence[Answer]:
    overrides = {probation.target_file: probation.predecessor_text}
    job = run.job(units, run_id, run_id, end.skills.version, end.prompts_version, overrides=overrides, resume=True)
    if not job.question_ids:
        return ()
    try:
        return await sound_answers(run, f"probation of {probation.task_type}", job)
    except EndpointDown as failure:
        if len(job.question_ids) >= LOST_AT_START:
            raise
        # So few questions can fail each for itself; to stop here would stop every resumed run again.
        run.progress.note(f"probation of {probation.task_type}: no pairs of this epoch, {failure}")
        return ()
