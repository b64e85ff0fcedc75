"""Everything that the page about a run shows (TRN-13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from services.trainer.domain.evaluations import DualMetric, HoldoutTable
from services.trainer.domain.runs import CallSummary, Run
from services.trainer.domain.step_rows import EvolutionRecordRow, GateEvidenceRow, StepReportRow
from services.trainer.domain.workspaces import Manifest
from services.trainer.use_cases.ports import Services


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run's rows as the store has them; `questions` holds the text of the questions that cases name."""

    run: Run
    manifest: Manifest
    metrics: tuple[DualMetric, ...]
    holdout: HoldoutTable
    steps: tuple[StepReportRow, ...]
    evidence: tuple[GateEvidenceRow, ...]
    edits: tuple[EvolutionRecordRow, ...]
    calls: tuple[CallSummary, ...]
    questions: Mapping[str, str]


async def gather_report(services: Services, workspace: str, run_id: str) -> RunReport:
    """Reads everything about a run; changes nothing."""
    manifest, _ = await services.workspaces.get(workspace)
    questions = await services.library.questions(manifest.current.questions)
    return RunReport(
        run=await services.runs.get(workspace, run_id),
        manifest=manifest,
        metrics=tuple(await services.ledger.dual_metrics(workspace, run_id)),
        holdout=await services.ledger.holdout_table(workspace, run_id),
        steps=tuple(await services.ledger.step_reports(workspace, run_id)),
        evidence=tuple(await services.ledger.gate_evidence(workspace, run_id)),
        edits=tuple(await services.ledger.evolution_records(workspace, run_id)),
        calls=tuple(await services.runs.call_summaries(workspace, run_id)),
        questions={question.question_id: question.text for question in questions},
    )
