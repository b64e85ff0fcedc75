"""Later results of provisionally accepted skills against their predecessors (GAT-13).

The pairs come from val evaluations: the last one before the accept answered with the predecessor's text, the one
at the epoch's end with the new text, and neither had a part in the accept. Each predecessor's draw is used once.
The gate's own units are no pairs: the predecessor's draws there were what the accept was won against.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from services.trainer.domain import run_ids
from services.trainer.domain.evaluations import DualMetric
from services.trainer.domain.evolution import RejectedEdit
from services.trainer.domain.gate_round import ProbationPair, ProbationReview
from services.trainer.domain.step_rows import EvolutionRecord
from services.trainer.domain.trainer_state import (
    Probation,
    TrainerState,
    with_probation,
    with_rejected,
    without_probation,
)
from services.trainer.domain.unit_results import INFRA_STOP_REASONS, unit_outcomes
from services.trainer.use_cases.training_run import TrainingRun


@dataclass(frozen=True, slots=True)
class ProbationResult:
    """Files to put back (name to text), the state after the review, and a record of each roll-back."""

    restored: Mapping[str, str]
    state: TrainerState
    records: tuple[EvolutionRecord, ...]


async def review_probations(
    run: TrainingRun,
    epoch: int,
    state: TrainerState,
    skills_version: str,
    prompts_version: str,
    current: Mapping[str, bool],
) -> ProbationResult:
    """Adds this epoch's pairs to each probation and asks the gate for a decision on it.

    `current` holds the result per unit of the val evaluation at the end of `epoch`, made with these versions.
    """
    restored: dict[str, str] = {}
    records: list[EvolutionRecord] = []
    for task_type, probation in sorted(state.probation.items()):
        known = {unit_id for unit_id, _, _ in probation.pairs}
        fresh = await _pairs(run, epoch, probation, prompts_version, current)
        pairs = (*probation.pairs, *(pair for pair in fresh if pair[0] not in known))
        review = await run.services.gate.review_probation(
            [ProbationPair(*pair) for pair in pairs],
            run.settings.e_rollback,
            run.settings.probation_units,
            run.settings.verdict_parameters,
        )
        state = _after(state, replace(probation, pairs=pairs), review, run.settings.rejected_edits_kept)
        if review.decision == "roll_back":
            restored[probation.target_file] = probation.predecessor_text
            records.append(_record(probation, review, skills_version))
        if review.decision != "continue":
            run.progress.note(f"probation of {task_type}: {review.decision}, {review.reason}")
    return ProbationResult(restored, state, tuple(records))


async def _pairs(
    run: TrainingRun, epoch: int, probation: Probation, prompts_version: str, current: Mapping[str, bool]
) -> list[tuple[str, bool, bool]]:
    before = await _previous_evaluation(run, epoch)
    if before is None or before.prompts_version != prompts_version:
        return []  # a pair must differ in the skill alone
    skills = await run.services.versions.get(run.workspace, "skills", before.skills_version)
    if skills.texts.get(probation.target_file) != probation.predecessor_text:
        return []
    units = [unit.unit for unit in run.val if unit.task_type == probation.task_type]
    answers = await run.services.runs.predictions(run.workspace, before.measured_run_id)
    correct = {each.question_id: each.correct for each in answers if each.stop_reason not in INFRA_STOP_REASONS}
    old = unit_outcomes(units, correct)
    return [(u.unit_id, old[u.unit_id], current[u.unit_id]) for u in units if u.unit_id in old and u.unit_id in current]


async def _previous_evaluation(run: TrainingRun, epoch: int) -> DualMetric | None:
    metrics = await run.services.ledger.dual_metrics(run.workspace, run.run_id)
    wanted = ("initial", -1) if epoch == 0 else ("final", epoch - 1)
    return next((each for each in metrics if (each.version_kind, each.epoch) == wanted), None)


def _after(state: TrainerState, probation: Probation, review: ProbationReview, kept: int) -> TrainerState:
    """The state after a review; what is rolled back was refused by the gate, and is not to be proposed again."""
    if review.decision == "continue":
        return with_probation(state, probation)
    state = without_probation(state, probation.task_type)
    if review.decision != "roll_back":
        return state
    refused = RejectedEdit(probation.fingerprint, probation.edits, f"ROLLED_BACK: {review.reason}")
    return with_rejected(state, probation.task_type, refused, kept)


def _record(probation: Probation, review: ProbationReview, skills_version: str) -> EvolutionRecord:
    return EvolutionRecord(
        target=probation.target_file,
        task_type=probation.task_type,
        status="rejected",
        rejections_json=f'["rolled back: W={review.w}, L={review.l} over {review.n_used} later pairs"]',
        base_version=skills_version,
    )


def rollback_trigger(run: TrainingRun, epoch: int) -> str:
    """The run named as the cause of a roll-back at the end of `epoch`."""
    return run_ids.evaluation_run(run.run_id, epoch, "val", "final")
