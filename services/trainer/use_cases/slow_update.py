"""The slow update at an epoch's end: the MOMENTUM block of each skill, tried on val and kept or reverted (EVO-10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from services.trainer.domain import run_ids
from services.trainer.domain.evolution import SkillText, SlowUpdateRequest, UnitChange
from services.trainer.domain.pools import PoolUnit
from services.trainer.domain.prompt_targets import SKILLS_TARGET
from services.trainer.domain.unit_results import INFRA_STOP_REASONS, unit_outcomes
from services.trainer.use_cases.evaluate import Evaluation, evaluate
from services.trainer.use_cases.training_run import TrainingRun


@dataclass(frozen=True, slots=True)
class SlowUpdateResult:
    """The skills it changed (name to text) and how they did on val; `accepted` unless worse than the epoch's final."""

    texts: Mapping[str, str]
    evaluation: Evaluation
    accepted: bool


async def epoch_outcomes(run: TrainingRun, epoch: int) -> dict[str, bool]:
    """Result per diag unit of an epoch's rollouts."""
    outcomes: dict[str, bool] = {}
    for step in range(run.schedule.steps_per_epoch):
        batch = set(run.schedule.batch(run.schedule.position(epoch, step)))
        units = [unit.unit for unit in run.diag if unit.unit_id in batch]
        answers = await run.services.runs.predictions(run.workspace, run_ids.rollout_run(run.run_id, epoch, step))
        correct = {each.question_id: each.correct for each in answers if each.stop_reason not in INFRA_STOP_REASONS}
        outcomes.update(unit_outcomes(units, correct))
    return outcomes


async def try_slow_update(
    run: TrainingRun,
    epoch: int,
    skills_version: str,
    prompts_version: str,
    files: Mapping[str, str],
    pending: Mapping[str, str],
    final: Evaluation,
) -> SlowUpdateResult | None:
    """None before the second epoch, when it is switched off, when skills are no target, or when no skill changed.

    `files` are the skills in force, `pending` those of them that are not published yet.
    """
    if epoch < 1 or not run.settings.slow_update or SKILLS_TARGET not in run.settings.targets:
        return None
    run.progress.phase("slow update")
    proposed = await run.services.evolver.slow_update(
        SlowUpdateRequest(
            workspace=run.workspace,
            run_id=run.run_id,
            skills=tuple(SkillText(name, files[name]) for name in sorted(files)),
            changes=await _unit_changes(run, epoch),
            history=await _history(run, epoch),
            leak_guards=run.leak_guards(),
        )
    )
    texts = {skill.name: skill.text for skill in proposed.skills if skill.text != files[skill.name]}
    if not texts:
        return None
    overrides = {**pending, **texts}
    tried = await evaluate(run, epoch, "val", "slow_candidate", skills_version, prompts_version, overrides)
    accepted = tried.hard is not None and final.hard is not None and tried.hard >= final.hard
    return SlowUpdateResult(texts, tried, accepted)


async def _unit_changes(run: TrainingRun, epoch: int) -> tuple[UnitChange, ...]:
    earlier, later = await epoch_outcomes(run, epoch - 1), await epoch_outcomes(run, epoch)
    return tuple(
        UnitChange(unit.unit_id, unit.task_type, earlier[unit.unit_id], later[unit.unit_id], _summary(run, unit))
        for unit in run.diag
        if unit.unit_id in earlier and unit.unit_id in later
    )


def _summary(run: TrainingRun, unit: PoolUnit) -> str:
    return " / ".join(run.questions[question].text for question in unit.question_ids)


async def _history(run: TrainingRun, epoch: int) -> tuple[str, ...]:
    rows = await run.services.ledger.step_reports(run.workspace, run.run_id)
    return tuple(
        f"{each.task_type}: {each.gate_action} (W={each.w}, L={each.l}): {each.stop_reason}"
        for each in (row.report for row in rows if row.epoch == epoch)
        if each.n_planned > 0
    )
