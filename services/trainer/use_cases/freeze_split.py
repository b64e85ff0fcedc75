"""Splits the answered questions into pools and freezes them (TRN-4, STO-10)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from services.questions import Question, units_of
from services.trainer.domain.errors import MissingResults
from services.trainer.domain.pools import Pools, PoolUnit
from services.trainer.domain.split import POOL_NAMES, Split, SplitCase, SplitParameters, split_pools
from services.trainer.domain.unit_results import INFRA_STOP_REASONS
from services.trainer.domain.workspaces import Manifest
from services.trainer.use_cases.baseline import BASELINE_RUN
from services.trainer.use_cases.ports import Services


@dataclass(frozen=True, slots=True)
class FrozenSplit:
    """The split, its fingerprint in the store, the backup that force made, and the questions left out as INFRA."""

    split: Split
    pools_sha256: str
    backup_name: str
    left_out: tuple[str, ...]


async def freeze_split(
    services: Services,
    manifest: Manifest,
    parameters_for: Callable[[int], SplitParameters],
    *,
    force: bool,
    leave_out_infra: bool,
) -> FrozenSplit:
    """Splits and freezes; `parameters_for` gives the parameters for a number of questions.

    Raises MissingResults when questions have no usable baseline answer (those that ended INFRA can be left out),
    InfeasibleSplit when val cannot be filled, ServiceFailed (ALREADY_EXISTS) when another split is frozen.
    """
    questions = await services.library.questions(manifest.current.questions)
    correct = await _baseline(services, manifest, questions)
    infra = tuple(question for question, right in correct.items() if right is None)
    if infra and not leave_out_infra:
        remedy = "run `videotree baseline` again, or pass --leave-out-infra"
        raise MissingResults("questions ended in an infrastructure fault", infra, remedy)
    units_left_out = {question.unit_id for question in questions if correct[question.question_id] is None}
    kept = [question for question in questions if question.unit_id not in units_left_out]
    tiers = {
        each.question_id: each.tier for each in await services.ledger.baseline_diagnoses(manifest.name, BASELINE_RUN)
    }
    cases = [_case(each, bool(correct[each.question_id]), tiers) for each in kept]
    split = split_pools(cases, parameters_for(len(cases)))
    pools = Pools(BASELINE_RUN, manifest.current.questions, _pool_units(kept, split))
    sha256, backup = await services.workspaces.freeze_pools(
        manifest.name, pools, split_manifest_json(split), force=force
    )
    return FrozenSplit(split, sha256, backup, infra)


def split_manifest_json(split: Split) -> str:
    """The split manifest: parameters, counts per pool and type, defects captured, fingerprint."""
    content = {
        "parameters": asdict(split.parameters),
        "counts": {name: asdict(split.counts[name]) for name in POOL_NAMES},
        "t2_captured": split.t2_captured,
        "repaired_groups": split.repaired_groups,
        "sha256": split.sha256,
    }
    return json.dumps(content, sort_keys=True, indent=2)


async def _baseline(services: Services, manifest: Manifest, questions: Sequence[Question]) -> dict[str, bool | None]:
    """Right or wrong per question; None where the answer ended INFRA."""
    answers = {each.question_id: each for each in await services.runs.predictions(manifest.name, BASELINE_RUN)}
    missing = [question.question_id for question in questions if question.question_id not in answers]
    if missing:
        raise MissingResults("questions have no baseline answer", missing, "run `videotree baseline` first")
    found = [answers[question.question_id] for question in questions]
    return {each.question_id: None if each.stop_reason in INFRA_STOP_REASONS else each.correct for each in found}


def _case(question: Question, correct: bool, tiers: Mapping[str, str]) -> SplitCase:
    tier = None if correct else tiers.get(question.question_id)
    return SplitCase(question.question_id, question.group_id, question.task_type, question.unit_id, correct, tier)


def _pool_units(questions: Sequence[Question], split: Split) -> tuple[PoolUnit, ...]:
    pool_of = {question: name for name in POOL_NAMES for question in split.pools[name]}
    videos = {question.question_id: question.video_id for question in questions}
    return tuple(
        PoolUnit(
            unit_id=unit.unit_id,
            task_type=unit.task_type,
            video_id=videos[unit.question_ids[0]],
            question_ids=unit.question_ids,
            pool=pool_of[unit.question_ids[0]],
        )
        for unit in sorted(units_of(questions), key=lambda each: each.unit_id)
    )
