"""The end of an epoch: val, probation, slow update, best, held-out test, in one commit (TRN-8, TRN-9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from services.trainer.domain.best import REVERTED_MARK, best_entry, better
from services.trainer.domain.decisions import EpochDecision
from services.trainer.domain.errors import EndpointDown
from services.trainer.domain.evaluations import DualMetric, UnitObservation
from services.trainer.domain.holdout import VersionPair
from services.trainer.domain.trainer_state import TrainerState
from services.trainer.domain.versions import Version, VersionChange, upcoming_versions
from services.trainer.domain.workspaces import Best, BestEntry, Manifest
from services.trainer.use_cases.evaluate import Evaluation, dual_metric, evaluate
from services.trainer.use_cases.holdout_test import Deployable, run_holdout
from services.trainer.use_cases.probation_pairs import EpochEnd
from services.trainer.use_cases.review_probation import review_probations, rollback_trigger
from services.trainer.use_cases.run_step import require_expected_versions
from services.trainer.use_cases.slow_update import SlowUpdateResult, epoch_outcomes, try_slow_update
from services.trainer.use_cases.training_run import TrainingRun


async def evaluate_start(run: TrainingRun, state: TrainerState) -> None:
    """Evaluates the starting versions on val with the salt of epoch 0, before the first epoch (TRN-8)."""
    manifest, _ = await run.services.workspaces.get(run.workspace)
    current = manifest.current
    initial = await evaluate(run, 0, "val", "initial", current.skills, current.prompts, {})
    _require_score(initial)
    metric = dual_metric(run, -1, "initial", initial, current.skills, current.prompts)
    decision = EpochDecision(
        workspace=run.workspace,
        run_id=run.run_id,
        epoch=-1,
        checkpoint=run.checkpoint(0, 0, state),
        dual_metrics=(metric,),
        best=_new_best(manifest, [metric]),
    )
    await run.services.ledger.commit_epoch(decision)


@dataclass(frozen=True, slots=True)
class _Versions:
    """The skills in force at an epoch's end and what its commit will publish on top of them."""

    skills: Version
    existing: tuple[str, ...]
    changes: tuple[VersionChange, ...]

    @property
    def names(self) -> list[str]:
        return upcoming_versions(self.existing, len(self.changes))

    @property
    def last(self) -> str:
        return self.names[-1] if self.changes else self.skills.version

    def deployables(self) -> dict[str, Deployable]:
        overrides: dict[str, str] = {}
        ready: dict[str, Deployable] = {}
        for name, change in zip(self.names, self.changes, strict=True):
            overrides = {**overrides, **change.overrides}
            ready[name] = Deployable(self.skills.version, overrides)
        return ready


async def end_epoch(
    run: TrainingRun, epoch: int, state: TrainerState, require_room: Callable[[], Awaitable[None]]
) -> tuple[EpochDecision, TrainerState]:
    """Ends an epoch and commits what its end decided; returns that and the trainer's state after it.

    `require_room` is awaited before what a probation has to draw, and may raise.
    """
    services = run.services
    manifest, _ = await services.workspaces.get(run.workspace)
    prompts = manifest.current.prompts
    skills = await services.versions.get(run.workspace, "skills", manifest.current.skills)
    existing = tuple(each.version for each in await services.versions.all(run.workspace, "skills"))

    final = await evaluate(run, epoch, "val", "final", skills.version, prompts, {})
    _require_score(final)
    review = await review_probations(run, state, EpochEnd(epoch, skills, prompts, final), require_room)
    files = {**skills.texts, **review.restored}
    slow = await try_slow_update(run, epoch, skills.version, prompts, files, review.restored, final)
    versions = _Versions(skills, existing, tuple(_changes(run, epoch, review.restored, slow)))

    fresh = [dual_metric(run, epoch, "final", final, skills.version, prompts)]
    if slow is not None:
        name = versions.last if slow.accepted else f"{skills.version}{REVERTED_MARK}slow-update"
        fresh.append(dual_metric(run, epoch, "slow_candidate", slow.evaluation, name, prompts))
    metrics = [*await services.ledger.dual_metrics(run.workspace, run.run_id), *fresh]
    best_hard, best_mixed = best_entry(metrics, "hard"), best_entry(metrics, "mixed")
    last = VersionPair(versions.last, prompts)
    holdout = await run_holdout(run, epoch, last, _pair(best_hard) or last, _pair(best_mixed), versions.deployables())
    decision = EpochDecision(
        workspace=run.workspace,
        run_id=run.run_id,
        epoch=epoch,
        checkpoint=run.checkpoint(epoch + 1, 0, review.state),
        dual_metrics=tuple(fresh),
        holdout_evals=holdout.evals,
        holdout_lines=holdout.lines,
        observations=await _observations(run, epoch, final.outcomes),
        changes=versions.changes,
        best=_new_best(manifest, metrics),
        evolution_records=review.records,
        step=run.schedule.steps_per_epoch,
    )
    require_expected_versions(await services.ledger.commit_epoch(decision), versions.names)
    return decision, review.state


def _changes(
    run: TrainingRun, epoch: int, restored: Mapping[str, str], slow: SlowUpdateResult | None
) -> list[VersionChange]:
    trigger = rollback_trigger(run, epoch)
    changes = []
    if restored:
        names = ", ".join(sorted(restored))
        changes.append(VersionChange("skills", restored, "rollback", trigger, f"probation failed: {names}"))
    if slow is not None and slow.accepted:
        text = f"momentum of epoch {epoch}: {len(slow.texts)} skills"
        changes.append(VersionChange("skills", slow.texts, "slow_update", slow.evaluation.run_id, text))
    return changes


async def _observations(run: TrainingRun, epoch: int, val_outcomes: Mapping[str, bool]) -> tuple[UnitObservation, ...]:
    observed = {**await epoch_outcomes(run, epoch), **val_outcomes}
    return tuple(UnitObservation(unit_id, observed[unit_id]) for unit_id in sorted(observed))


def _new_best(manifest: Manifest, metrics: Sequence[DualMetric]) -> Best:
    return Best(
        hard=better(best_entry(metrics, "hard"), manifest.best.hard),
        mixed=better(best_entry(metrics, "mixed"), manifest.best.mixed),
    )


def _pair(entry: BestEntry | None) -> VersionPair | None:
    return None if entry is None else VersionPair(entry.skills, entry.prompts)


def _require_score(evaluation: Evaluation) -> None:
    if evaluation.hard is None:
        raise EndpointDown(f"no unit of {evaluation.run_id} has a result: check the inference service, then resume")
