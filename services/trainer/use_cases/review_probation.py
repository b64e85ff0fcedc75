"""Later results of provisionally accepted skills against their predecessors, judged at each epoch's end (GAT-13)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from services.trainer.domain import run_ids
from services.trainer.domain.evolution import RejectedEdit
from services.trainer.domain.gate_round import ProbationPair, ProbationReview
from services.trainer.domain.step_rows import EvolutionRecord
from services.trainer.domain.trainer_state import (
    Probation,
    TrainerState,
    followed,
    with_probation,
    with_rejected,
    without_probation,
)
from services.trainer.use_cases.probation_pairs import EpochEnd, FreshPairs, fresh_pairs
from services.trainer.use_cases.training_run import TrainingRun

_DECISIONS = {
    "roll_back": "rolled back",
    "confirmed": "confirmed",
    "kept": "kept",
    "continue": "still on probation",
}
_PAIRS = {
    (True, True): "both right",
    (False, False): "both wrong",
    (False, True): "won",
    (True, False): "lost",
}


@dataclass(frozen=True, slots=True)
class ProbationResult:
    """Files to put back (name to text), the state after the reviews, and a record of each."""

    restored: Mapping[str, str]
    state: TrainerState
    records: tuple[EvolutionRecord, ...]


async def review_probations(
    run: TrainingRun, state: TrainerState, end: EpochEnd, require_room: Callable[[], Awaitable[None]]
) -> ProbationResult:
    """Adds this epoch's pairs to each probation and asks the gate for a decision on all of its pairs.

    `require_room` is awaited before each piece of work that costs model calls. Raises EndpointDown.
    """
    restored: dict[str, str] = {}
    records: list[EvolutionRecord] = []
    for task_type, begun in sorted(state.probation.items()):
        probation = followed(begun, end.skills.texts.get(begun.target_file, ""))
        if probation is None:
            state = without_probation(state, task_type)
            run.progress.note(f"probation of {task_type}: ended, {begun.target_file} was changed since its accept")
            continue
        fresh = await fresh_pairs(run, end, probation, require_room)
        probation = replace(probation, pairs=(*probation.pairs, *fresh.pairs))
        review = await _review(run, probation)
        state = _after(state, probation, review, run.settings.rejected_edits_kept)
        records.append(_record(probation, review, fresh, end))
        if review.decision == "roll_back":
            restored[probation.target_file] = probation.predecessor_text
        if review.decision != "continue":
            run.progress.note(f"probation of {task_type}: {review.decision}, {review.reason}")
    return ProbationResult(restored, state, tuple(records))


async def _review(run: TrainingRun, probation: Probation) -> ProbationReview:
    return await run.services.gate.review_probation(
        [ProbationPair(*pair) for pair in probation.pairs],
        run.settings.e_rollback,
        run.settings.probation_units,
        run.settings.verdict_parameters,
    )


def _after(state: TrainerState, probation: Probation, review: ProbationReview, kept: int) -> TrainerState:
    """The state after a review; what is rolled back was refused by the gate, and is not to be proposed again."""
    if review.decision == "continue":
        return with_probation(state, probation)
    state = without_probation(state, probation.task_type)
    if review.decision != "roll_back":
        return state
    refused = RejectedEdit(probation.fingerprint, probation.edits, f"ROLLED_BACK: {review.reason}")
    return with_rejected(state, probation.task_type, refused, kept)


def _record(probation: Probation, review: ProbationReview, fresh: FreshPairs, end: EpochEnd) -> EvolutionRecord:
    """The review as a row: its decision over all pairs so far, and the pairs that this epoch added."""
    figures = f"W={review.w}, L={review.l} over {review.n_used} later pairs"
    pairs = ", ".join(f"{unit} {_PAIRS[old, new]}" for unit, old, new in fresh.pairs) or "none"
    lines = [
        f"{_DECISIONS[review.decision]}: {figures}",
        f"pairs of {end.final.run_id} against {fresh.predecessor_run}: {pairs}",
    ]
    return EvolutionRecord(
        target=probation.target_file,
        task_type=probation.task_type,
        status="rejected" if review.decision == "roll_back" else "skipped",
        rejections_json=json.dumps(lines),
        base_version=end.skills.version,
    )


def rollback_trigger(run: TrainingRun, epoch: int) -> str:
    """The run named as the cause of a roll-back at the end of `epoch`."""
    return run_ids.evaluation_run(run.run_id, epoch, "val", "final")
