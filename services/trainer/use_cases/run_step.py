"""One training step: rollout, diagnosis, proposals, gate, settlement (TRN-7). Only the last of its phases writes."""

from __future__ import annotations

from collections.abc import Sequence

from services.trainer.domain import run_ids
from services.trainer.domain.answering import Answer
from services.trainer.domain.decisions import Committed, StepDecision
from services.trainer.domain.diagnoses import DiagnoseJob, DiagnoseProgress, DiagnoseResult
from services.trainer.domain.errors import ServiceFailed, WorkspaceProblem
from services.trainer.domain.pools import PoolUnit
from services.trainer.domain.schedule import Position
from services.trainer.domain.trainer_state import TrainerState
from services.trainer.domain.unit_results import INFRA_STOP_REASONS, share_right_by_type, unit_outcomes
from services.trainer.domain.workspaces import Manifest
from services.trainer.use_cases.judge_candidates import assemble_gates, judge_candidates
from services.trainer.use_cases.propose_edits import propose_edits
from services.trainer.use_cases.settle_step import StepFacts, settle_step
from services.trainer.use_cases.training_run import TrainingRun, answer_all
from services.trainer.use_cases.try_prompt import Trial, target_of, together, try_prompt


async def run_step(run: TrainingRun, position: Position, state: TrainerState) -> tuple[StepDecision, TrainerState]:
    """Runs the step and commits it; returns what was decided and the trainer's state after it.

    A crash before the commit leaves nothing that counts: the step is cleared and run again, with the same salts.
    """
    services = run.services
    if await services.ledger.clear_step(run.workspace, run.run_id, position.epoch, position.step):
        raise WorkspaceProblem(
            f"step {position.step} of epoch {position.epoch} was committed meanwhile: "
            f"does another trainer work on run {run.run_id}?"
        )
    manifest, _ = await services.workspaces.get(run.workspace)
    skills = await services.versions.get(run.workspace, "skills", manifest.current.skills)
    prompts = await services.versions.get(run.workspace, "prompts", manifest.current.prompts)
    existing = {
        kind: tuple(each.version for each in await services.versions.all(run.workspace, kind))
        for kind in ("skills", "prompts")
    }
    by_id = {unit.unit_id: unit for unit in run.diag}
    batch = [by_id[unit_id] for unit_id in run.schedule.batch(position)]

    answers = await _roll_out(run, position, manifest, batch)
    target = target_of(run, position, state)
    diagnosis = await _diagnose(run, position, manifest, batch, with_pooled_pack=target is not None)
    run.progress.phase("proposals", position=position)
    types = sorted({unit.task_type for unit in batch})
    proposals = await propose_edits(run, position, state, skills.texts, types, diagnosis.case_packs)
    gate_input = await assemble_gates(run, position, proposals)
    if gate_input.specs:
        run.progress.phase("gate", sum(len(spec.ladder) for spec in gate_input.specs), position)
    judgement = await judge_candidates(run, position, manifest, gate_input)
    trials = [Trial(tuple(proposals), gate_input, judgement)]
    if target is not None and diagnosis.pooled_pack is not None:
        pooled, accepted = diagnosis.pooled_pack, judgement.accepted
        trials.append(await try_prompt(run, position, state, manifest, target, prompts, pooled, accepted))
    trial = together(trials)
    facts = StepFacts(
        position=position,
        bases={"skills": skills, "prompts": prompts},
        existing_versions=existing,
        rollout_accuracy=_accuracy(batch, answers),
        proposals=trial.proposals,
        gate_input=trial.gate_input,
        judgement=trial.judgement,
    )
    decision, after = settle_step(run, state, facts)
    require_expected_versions(await services.ledger.commit_step(decision), _expected(decision))
    return decision, after


def require_expected_versions(committed: Committed, expected: Sequence[str]) -> None:
    """Raises WorkspaceProblem when the store named the published versions otherwise than their rows say."""
    names = [version.version for version in committed.versions]
    if not committed.already_committed and names != list(expected):
        raise WorkspaceProblem(
            f"the store published {', '.join(names) or 'nothing'} where {', '.join(expected) or 'nothing'} was "
            "expected: something else published a version during the run; let only the trainer publish while it runs"
        )


def _expected(decision: StepDecision) -> list[str]:
    return [report.accepted_version for report in decision.step_reports if report.accepted_version]


async def _roll_out(
    run: TrainingRun, position: Position, manifest: Manifest, batch: Sequence[PoolUnit]
) -> list[Answer]:
    job = run.job(
        batch,
        run_ids.rollout_run(run.run_id, position.epoch, position.step),
        run_ids.epoch_salt(run.run_id, position.epoch),
        manifest.current.skills,
        manifest.current.prompts,
        overrides={},
        resume=False,
    )
    run.progress.phase("rollout", len(job.question_ids), position)
    return await answer_all(run.services.agent, run.progress, job)


async def _diagnose(
    run: TrainingRun, position: Position, manifest: Manifest, batch: Sequence[PoolUnit], *, with_pooled_pack: bool
) -> DiagnoseResult:
    run.progress.phase("diagnosis", position=position)
    job = DiagnoseJob(
        workspace=run.workspace,
        run_id=run_ids.rollout_run(run.run_id, position.epoch, position.step),
        dataset=run.dataset,
        question_ids=tuple(question for unit in batch for question in unit.question_ids),
        skills_version=manifest.current.skills,
        prompts_version=manifest.current.prompts,
        with_case_packs=True,
        max_steps=run.settings.max_steps,
        with_pooled_pack=with_pooled_pack,
    )
    async for event in run.services.evolver.diagnose(job):
        if isinstance(event, DiagnoseProgress):
            run.progress.advanced(event.done_count, event.total_count)
        else:
            return event
    raise ServiceFailed("evolver", "DATA_LOSS", "the diagnosis ended without a result; run the command again")


def _accuracy(batch: Sequence[PoolUnit], answers: Sequence[Answer]) -> dict[str, float]:
    correct = {each.question_id: each.correct for each in answers if each.stop_reason not in INFRA_STOP_REASONS}
    units = [unit.unit for unit in batch]
    return share_right_by_type(units, unit_outcomes(units, correct))
