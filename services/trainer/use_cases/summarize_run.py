"""What a run came to, in figures: the content of `summary.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.trainer.domain.best import published
from services.trainer.domain.evaluations import DualMetric
from services.trainer.domain.runs import CallSummary
from services.trainer.domain.step_rows import StepReportRow
from services.trainer.use_cases.ports import Services

FREE = frozenset({"hit", "joined"})
"""Cache statuses of calls that cost nothing upstream."""


async def summarize_run(
    services: Services, workspace: str, run_id: str, wall_seconds: float, stopped_early: bool
) -> dict[str, Any]:
    """The summary of a run: versions, verdicts, val accuracy before and after, calls, seconds of this command.

    What was not recorded is None.
    """
    manifest, path = await services.workspaces.get(workspace)
    run = await services.runs.get(workspace, run_id)
    metrics = await services.ledger.dual_metrics(workspace, run_id)
    reports = await services.ledger.step_reports(workspace, run_id)
    table = await services.ledger.holdout_table(workspace, run_id)
    calls = await services.runs.call_summaries(workspace, run_id)
    before, after = _val_accuracy(metrics)
    return {
        "run_id": run_id,
        "workspace": workspace,
        "workspace_path": path,
        "skills_version_before": metrics[0].skills_version if metrics else run.skills_version,
        "skills_version_after": manifest.current.skills,
        "prompts_version_before": metrics[0].prompts_version if metrics else run.prompts_version,
        "prompts_version_after": manifest.current.prompts,
        "epochs": len({row.epoch for row in reports}),
        "stopped_early": stopped_early,
        "gates": [_gate(row) for row in reports if row.report.n_planned > 0],
        "skips": [_skip(row) for row in reports if row.report.n_planned == 0],
        "published_between_steps": await _published_between_steps(services, workspace, run_id),
        "val_accuracy_before": before,
        "val_accuracy_after": after,
        "test": [
            {
                "epoch": line.epoch,
                "line": line.line,
                "skills_version": line.skills_version,
                "prompts_version": line.prompts_version,
                "accuracy": line.accuracy,
                "how": line.how,
            }
            for line in table.holdout_lines
        ],
        **_costs(calls),
        "wall_seconds": round(wall_seconds, 3),
    }


async def _published_between_steps(services: Services, workspace: str, run_id: str) -> list[dict[str, str]]:
    """Skills versions that no gate of a step made: slow updates, and roll-backs of provisional accepts."""
    return [
        {"version": each.version, "source": each.source, "description": each.description}
        for each in await services.versions.all(workspace, "skills")
        if each.trigger_run.startswith(f"{run_id}_") and each.source != "evolution"
    ]


def _val_accuracy(metrics: Sequence[DualMetric]) -> tuple[float | None, float | None]:
    known = published(metrics)
    return (known[0].hard, known[-1].hard) if known else (None, None)


def _gate(row: StepReportRow) -> dict[str, Any]:
    report = row.report
    return {
        "epoch": row.epoch,
        "step": row.step,
        "task_type": report.task_type,
        "decision": report.gate_action,
        "w": report.w,
        "l": report.l,
        "e_value": report.e_value,
        "n_used": report.n_used,
        "n_planned": report.n_planned,
        "excluded": report.excluded,
        "launched": report.launched,
        "base_accuracy": report.base_accuracy,
        "cand_accuracy": report.cand_accuracy,
        "detectable_gain": report.detectable_gain,
        "accepted_version": report.accepted_version or None,
        "reason": report.stop_reason,
    }


def _skip(row: StepReportRow) -> dict[str, Any]:
    report = row.report
    return {
        "epoch": row.epoch,
        "step": row.step,
        "task_type": report.task_type,
        "action": report.gate_action,
        "reason": report.stop_reason,
    }


def _costs(calls: Sequence[CallSummary]) -> dict[str, int]:
    paid = [each for each in calls if each.cache_status not in FREE]
    return {
        "model_calls": sum(each.call_count for each in paid),
        "cache_hits": sum(each.call_count for each in calls) - sum(each.call_count for each in paid),
        "prompt_tokens": sum(each.prompt_tokens for each in paid),
        "completion_tokens": sum(each.completion_tokens for each in paid),
        "calls_without_usage": sum(each.unknown_usage_count for each in paid),
    }
