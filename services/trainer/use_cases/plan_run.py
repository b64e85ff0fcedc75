"""What a run will cost at most, from the pools and the baseline's measured calls and tokens (TRN-12)."""

from __future__ import annotations

from statistics import fmean

from services.trainer.domain.cost_plan import CostPerQuestion, CostPlan, plan_cost
from services.trainer.domain.errors import WorkspaceProblem
from services.trainer.use_cases.training_run import TrainingRun


async def plan_run(run: TrainingRun, baseline_run_id: str) -> tuple[CostPlan, CostPerQuestion]:
    """The plan, and the mean cost of a question it rests on. Raises WorkspaceProblem without a baseline."""
    answers = await run.services.runs.predictions(run.workspace, baseline_run_id)
    if not answers:
        raise WorkspaceProblem(f"workspace {run.workspace} has no baseline to measure a question's cost by")
    cost = CostPerQuestion(fmean(each.model_calls for each in answers), fmean(each.tokens for each in answers))
    ladders: dict[str, int] = {}
    for unit in (*run.diag, *run.val):
        ladders[unit.task_type] = ladders.get(unit.task_type, 0) + len(unit.question_ids)
    longest = run.settings.gate_n_max * max(len(unit.question_ids) for unit in (*run.diag, *run.val))
    plan = plan_cost(
        epochs=run.settings.epochs,
        diag_questions=sum(len(unit.question_ids) for unit in run.diag),
        val_questions=sum(len(unit.question_ids) for unit in run.val),
        test_questions=sum(len(unit.question_ids) for unit in run.test),
        ladder_questions={task_type: min(count, longest) for task_type, count in ladders.items()},
        steps_per_epoch=run.schedule.steps_per_epoch,
        gate_cooldown=run.settings.gate_cooldown,
        slow_update=run.settings.slow_update,
        holdout_test=run.settings.holdout_test,
        cost=cost,
    )
    return plan, cost
