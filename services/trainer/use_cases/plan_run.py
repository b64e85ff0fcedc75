"""What a run will cost at most, from the pools and the baseline's measured calls and tokens (TRN-12)."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from services.trainer.domain.cost_plan import CostPerQuestion, CostPlan, plan_cost
from services.trainer.domain.errors import WorkspaceProblem
from services.trainer.domain.pools import PoolUnit
from services.trainer.domain.prompt_targets import SKILLS_TARGET, prompt_targets
from services.trainer.use_cases.training_run import TrainingRun


async def plan_run(run: TrainingRun, baseline_run_id: str) -> tuple[CostPlan, CostPerQuestion]:
    """The plan, and the mean cost of a question it rests on. Raises WorkspaceProblem without a baseline."""
    answers = await run.services.runs.predictions(run.workspace, baseline_run_id)
    if not answers:
        raise WorkspaceProblem(f"workspace {run.workspace} has no baseline to measure a question's cost by")
    cost = CostPerQuestion(fmean(each.model_calls for each in answers), fmean(each.tokens for each in answers))
    ladders, val = _questions_by_type((*run.diag, *run.val)), _questions_by_type(run.val)
    largest = max(len(unit.question_ids) for unit in (*run.diag, *run.val))
    longest, longest_probation = run.settings.gate_n_max * largest, run.settings.probation_units * largest
    skills = SKILLS_TARGET in run.settings.targets
    plan = plan_cost(
        epochs=run.settings.epochs,
        diag_questions=sum(len(unit.question_ids) for unit in run.diag),
        val_questions=sum(len(unit.question_ids) for unit in run.val),
        test_questions=sum(len(unit.question_ids) for unit in run.test),
        ladder_questions={name: min(count, longest) for name, count in ladders.items()} if skills else {},
        steps_per_epoch=run.schedule.steps_per_epoch,
        gate_cooldown=run.settings.gate_cooldown,
        slow_update=run.settings.slow_update and skills,
        holdout_test=run.settings.holdout_test,
        cost=cost,
        prompt_turns_per_epoch=_prompt_turns(run),
        prompt_ladder_questions=min(sum(ladders.values()), longest),
        probation_questions=sum(min(count, longest_probation) for count in val.values()) if skills else 0,
    )
    return plan, cost


def _questions_by_type(units: Iterable[PoolUnit]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for unit in units:
        counts[unit.task_type] = counts.get(unit.task_type, 0) + len(unit.question_ids)
    return counts


def _prompt_turns(run: TrainingRun) -> int:
    """Steps of one epoch in which a prompt has its turn, at most."""
    if not prompt_targets(run.settings.targets, run.settings.solver):
        return 0
    return -(-run.schedule.steps_per_epoch // run.settings.prompt_every)
