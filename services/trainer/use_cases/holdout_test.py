"""The held-out test at an epoch's end: four lines, nothing measured twice, intent written before (TRN-9, TRN-13b)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from services.trainer.domain.evaluations import HoldoutEval, HoldoutRow
from services.trainer.domain.holdout import HoldoutLine, VersionPair, plan_holdout
from services.trainer.domain.unit_results import share_right
from services.trainer.use_cases.evaluate import counts_by_type, evaluate
from services.trainer.use_cases.training_run import TrainingRun

BASELINE_PAIR = VersionPair("v1", "v1")


@dataclass(frozen=True, slots=True)
class HoldoutResult:
    """The evaluations obtained in this epoch and the lines of its table."""

    evals: tuple[HoldoutEval, ...]
    lines: tuple[HoldoutRow, ...]


@dataclass(frozen=True, slots=True)
class Deployable:
    """How to answer with a version that may not be published yet: a published one, with some files replaced."""

    skills_version: str
    overrides: Mapping[str, str]


async def run_holdout(
    run: TrainingRun,
    epoch: int,
    final: VersionPair,
    best_hard: VersionPair,
    best_mixed: VersionPair | None,
    unpublished: Mapping[str, Deployable],
) -> HoldoutResult:
    """The lines of one epoch; `unpublished` says how to answer with versions that the epoch's commit will publish."""
    if not run.settings.holdout_test or not run.test:
        return HoldoutResult((), ())
    table = await run.services.ledger.holdout_table(run.workspace, run.run_id)
    memory = {
        VersionPair(each.skills_version, each.prompts_version): each
        for each in table.holdout_evals
        if each.how != "intended"
    }
    obtained: list[HoldoutEval] = []
    if BASELINE_PAIR not in memory:
        memory[BASELINE_PAIR] = _derived(run, epoch)
        obtained.append(memory[BASELINE_PAIR])
    plan = plan_holdout(BASELINE_PAIR, final, best_hard, best_mixed, list(memory))
    for line in plan:
        if line.how == "measured":
            memory[line.pair] = await _measure(run, epoch, line, unpublished)
            obtained.append(memory[line.pair])
    rows = tuple(
        HoldoutRow(epoch, line.label, line.pair.skills, line.pair.prompts, memory[line.pair].accuracy, line.how)
        for line in plan
    )
    return HoldoutResult(tuple(obtained), rows)


def _derived(run: TrainingRun, epoch: int) -> HoldoutEval:
    """The seed's baseline on test: test was drawn without looking at answers, so there it can serve."""
    outcomes = {unit.unit_id: run.baseline[unit.unit_id] for unit in run.test if unit.unit_id in run.baseline}
    return HoldoutEval(
        run_id=run.run_id,
        skills_version=BASELINE_PAIR.skills,
        prompts_version=BASELINE_PAIR.prompts,
        accuracy=share_right(outcomes),
        right_count=sum(outcomes.values()),
        unit_count=len(outcomes),
        infra_count=len(run.test) - len(outcomes),
        how="derived",
        measured_run_id="",
        epoch=epoch,
        by_type_json=json.dumps(counts_by_type(run.test, outcomes), sort_keys=True),
    )


async def _measure(
    run: TrainingRun, epoch: int, line: HoldoutLine, unpublished: Mapping[str, Deployable]
) -> HoldoutEval:
    """Writes the intent, then measures; the result becomes memory with the epoch's commit and not before.

    After a crash in between, the answers given are taken from the store and scored again.
    """
    deployable = unpublished.get(line.pair.skills, Deployable(line.pair.skills, {}))
    intent = HoldoutEval(
        run_id=run.run_id,
        skills_version=line.pair.skills,
        prompts_version=line.pair.prompts,
        accuracy=None,
        right_count=0,
        unit_count=0,
        infra_count=0,
        how="intended",
        measured_run_id="",
        epoch=epoch,
    )
    await run.services.ledger.put_holdout_eval(run.workspace, intent)
    result = await evaluate(
        run, epoch, "test", line.label, deployable.skills_version, line.pair.prompts, deployable.overrides
    )
    return HoldoutEval(
        run_id=run.run_id,
        skills_version=line.pair.skills,
        prompts_version=line.pair.prompts,
        accuracy=result.hard,
        right_count=result.right_count,
        unit_count=result.unit_count,
        infra_count=result.infra_count,
        how="measured",
        measured_run_id=result.run_id,
        epoch=epoch,
        by_type_json=result.by_type_json,
    )
