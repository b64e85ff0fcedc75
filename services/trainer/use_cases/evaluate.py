"""Answers a pool with one version pair and scores it (TRN-8)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from services.trainer.domain import run_ids
from services.trainer.domain.answering import Answer, AnswerJob, require_sound_answers
from services.trainer.domain.evaluations import DualMetric
from services.trainer.domain.pools import PoolUnit
from services.trainer.domain.runs import Prediction
from services.trainer.domain.stopping import mixed_score
from services.trainer.domain.unit_results import INFRA_STOP_REASONS, share_right, unit_outcomes
from services.trainer.use_cases.training_run import TrainingRun, answer_all


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result per unit and the scores; units that ended INFRA have no result and are counted apart."""

    run_id: str
    outcomes: Mapping[str, bool]
    unit_count: int
    infra_count: int
    hard: float | None
    soft: float | None
    by_type_json: str

    @property
    def right_count(self) -> int:
        """Units right."""
        return sum(self.outcomes.values())


async def evaluate(
    run: TrainingRun,
    epoch: int,
    pool: str,
    label: str,
    skills_version: str,
    prompts_version: str,
    overrides: Mapping[str, str],
) -> Evaluation:
    """Answers the pool's questions; answers that an interrupted evaluation left are taken from the store.

    Raises EndpointDown when more than `gate_guard_err` of them ended in an infrastructure fault.
    """
    units = run.val if pool == "val" else run.test
    run_id = run_ids.evaluation_run(run.run_id, epoch, pool, label)
    salt = run_ids.epoch_salt(run.run_id, epoch)
    job = run.job(units, run_id, salt, skills_version, prompts_version, overrides=overrides, resume=True)
    answers = await sound_answers(run, f"{pool}: {label.replace('_', ' ')}", job)
    soft = await _soft_score(run, run_id, job.question_ids) if pool == "val" and run.settings.soft_score else None
    return scored(run_id, units, answers, soft)


async def sound_answers(run: TrainingRun, phase: str, job: AnswerJob) -> list[Answer]:
    """All answers of a job, by question id.

    Raises EndpointDown when more than `gate_guard_err` of them ended in an infrastructure fault.
    """
    run.progress.phase(phase, len(job.question_ids))
    answers = await answer_all(run.services.agent, run.progress, job)
    require_sound_answers(answers, run.settings.gate_guard_err)
    return answers


def scored(run_id: str, units: Sequence[PoolUnit], answers: Sequence[Answer], soft: float | None) -> Evaluation:
    """The scores of answers to the questions of `units`."""
    outcomes = outcomes_of(units, answers)
    return Evaluation(
        run_id=run_id,
        outcomes=outcomes,
        unit_count=len(outcomes),
        infra_count=len(units) - len(outcomes),
        hard=share_right(outcomes),
        soft=soft,
        by_type_json=json.dumps(counts_by_type(units, outcomes), sort_keys=True),
    )


def outcomes_of(units: Sequence[PoolUnit], answers: Iterable[Answer | Prediction]) -> dict[str, bool]:
    """Right or wrong per unit, those that ended INFRA left out."""
    correct = {each.question_id: each.correct for each in answers if each.stop_reason not in INFRA_STOP_REASONS}
    return unit_outcomes([unit.unit for unit in units], correct)


def counts_by_type(units: Sequence[PoolUnit], outcomes: Mapping[str, bool]) -> dict[str, list[int]]:
    """Units right and units measured, per task type."""
    counts: dict[str, list[int]] = {}
    for unit in units:
        if unit.unit_id in outcomes:
            entry = counts.setdefault(unit.task_type, [0, 0])
            entry[0] += outcomes[unit.unit_id]
            entry[1] += 1
    return counts


def dual_metric(
    run: TrainingRun, epoch: int, kind: str, evaluation: Evaluation, skills_version: str, prompts_version: str
) -> DualMetric:
    """The evaluation as a row of the ledger."""
    hard, soft = evaluation.hard, evaluation.soft
    return DualMetric(
        run_id=run.run_id,
        epoch=epoch,
        version_kind=kind,
        pool="val",
        hard=hard,
        soft=soft,
        mixed=None if hard is None else mixed_score(hard, soft, run.settings.mixed_hard_weight),
        skills_version=skills_version,
        prompts_version=prompts_version,
        unit_count=evaluation.unit_count,
        infra_count=evaluation.infra_count,
        by_type_json=evaluation.by_type_json,
        measured_run_id=evaluation.run_id,
    )


async def _soft_score(run: TrainingRun, run_id: str, question_ids: Sequence[str]) -> float | None:
    scores = run.services.evolver.score_evidence(run.workspace, run_id, run.dataset, question_ids)
    known = [each.score async for each in scores if each.score is not None]
    return fmean(known) if known else None
