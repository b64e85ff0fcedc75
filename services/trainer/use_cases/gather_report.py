"""Everything that the page about a run shows (TRN-13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from services.questions import Question
from services.trainer.domain import run_ids
from services.trainer.domain.diagnoses import Diagnosis
from services.trainer.domain.evaluations import DualMetric, HoldoutTable
from services.trainer.domain.runs import CallSummary, Prediction, Run
from services.trainer.domain.step_rows import EvolutionRecordRow, GateEvidenceRow, StepReportRow
from services.trainer.domain.versions import Version
from services.trainer.domain.workspaces import Manifest
from services.trainer.use_cases.ports import Services

KINDS = ("skills", "prompts")


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """A version that the run put in force; `diff` against its parent where no edit of a step shows it, else empty."""

    version: Version
    diff: str


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run's rows as the store has them.

    `questions` holds all questions by id, `answers` those of the rollouts that motivated an edit, by (epoch, step,
    question id). `diagnoses` are those of the seed's baseline.
    """

    run: Run
    manifest: Manifest
    metrics: tuple[DualMetric, ...] = ()
    holdout: HoldoutTable = field(default_factory=lambda: HoldoutTable((), ()))
    steps: tuple[StepReportRow, ...] = ()
    evidence: tuple[GateEvidenceRow, ...] = ()
    edits: tuple[EvolutionRecordRow, ...] = ()
    calls: tuple[CallSummary, ...] = ()
    questions: Mapping[str, Question] = field(default_factory=dict)
    answers: Mapping[tuple[int, int, str], Prediction] = field(default_factory=dict)
    published: tuple[PublishedVersion, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()


async def gather_report(services: Services, workspace: str, run_id: str) -> RunReport:
    """Reads everything about a run; changes nothing."""
    manifest, _ = await services.workspaces.get(workspace)
    questions = await services.library.questions(manifest.current.questions)
    edits = tuple(await services.ledger.evolution_records(workspace, run_id))
    return RunReport(
        run=await services.runs.get(workspace, run_id),
        manifest=manifest,
        metrics=tuple(await services.ledger.dual_metrics(workspace, run_id)),
        holdout=await services.ledger.holdout_table(workspace, run_id),
        steps=tuple(await services.ledger.step_reports(workspace, run_id)),
        evidence=tuple(await services.ledger.gate_evidence(workspace, run_id)),
        edits=edits,
        calls=tuple(await services.runs.call_summaries(workspace, run_id)),
        questions={question.question_id: question for question in questions},
        answers=await _rollout_answers(services, workspace, run_id, edits),
        published=await _published(services, workspace, run_id),
        diagnoses=tuple(await services.ledger.baseline_diagnoses(workspace, manifest.baseline_run_id)),
    )


async def _rollout_answers(
    services: Services, workspace: str, run_id: str, edits: Iterable[EvolutionRecordRow]
) -> dict[tuple[int, int, str], Prediction]:
    """The answers of every step in which an edit was made."""
    return {
        (epoch, step, answer.question_id): answer
        for epoch, step in sorted({(row.epoch, row.step) for row in edits})
        for answer in await services.runs.predictions(workspace, run_ids.rollout_run(run_id, epoch, step))
    }


async def _published(services: Services, workspace: str, run_id: str) -> tuple[PublishedVersion, ...]:
    """The versions of both kinds that the run published, in order."""
    made = [
        version
        for kind in KINDS
        for version in await services.versions.all(workspace, kind)
        if version.trigger_run.startswith(f"{run_id}_")
    ]
    return tuple([PublishedVersion(each, await _own_diff(services, workspace, each)) for each in made])


async def _own_diff(services: Services, workspace: str, version: Version) -> str:
    if version.source == "evolution":
        return ""
    return await services.versions.diff(workspace, version.kind, version.parent, version.version)
