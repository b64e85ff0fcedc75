"""Phase D of a step: what was proposed and judged becomes one decision for the ledger. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from services.skills import text_sha256
from services.trainer.domain import run_ids
from services.trainer.domain.cooldown import cooldowns_after
from services.trainer.domain.decisions import StepDecision
from services.trainer.domain.evolution import Edit, Proposal, RejectedEdit
from services.trainer.domain.fingerprints import prompts_fingerprint
from services.trainer.domain.gate_round import GateOutcome
from services.trainer.domain.schedule import Position
from services.trainer.domain.settlement import AcceptedVersion, settle
from services.trainer.domain.step_rows import EvolutionRecord, GateEvidence, QuadrantPair, StepReport
from services.trainer.domain.trainer_state import (
    Probation,
    TrainerState,
    with_probation,
    with_rejected,
    without_probation,
)
from services.trainer.domain.versions import Version, VersionChange, upcoming_versions
from services.trainer.use_cases.judge_candidates import GateInput, Judgement
from services.trainer.use_cases.propose_edits import TypeProposal
from services.trainer.use_cases.training_run import TrainingRun

_QUADRANTS = {
    ("right", "right"): "both_right",
    ("wrong", "right"): "win",
    ("right", "wrong"): "loss",
    ("wrong", "wrong"): "both_wrong",
}


@dataclass(frozen=True, slots=True)
class StepFacts:
    """Everything a step found out, from which its decision follows.

    `bases` are the versions at its start and `existing_versions` the names of all, by kind: skills and prompts.
    """

    position: Position
    bases: Mapping[str, Version]
    existing_versions: Mapping[str, tuple[str, ...]]
    rollout_accuracy: Mapping[str, float]
    proposals: tuple[TypeProposal, ...]
    gate_input: GateInput
    judgement: Judgement


def settle_step(run: TrainingRun, state: TrainerState, facts: StepFacts) -> tuple[StepDecision, TrainerState]:
    """The decision of a step and the trainer's state after it, types in alphabetical order throughout."""
    outcomes = facts.judgement.outcomes
    versions = settle(facts.gate_input.candidates, {name: each.accepted for name, each in outcomes.items()})
    published = _published(facts, versions)
    after = state_after(run, state, facts)
    position = facts.position
    decision = StepDecision(
        workspace=run.workspace,
        run_id=run.run_id,
        epoch=position.epoch,
        step=position.step,
        checkpoint=run.checkpoint(position.epoch, position.step + 1, after),
        evidence=tuple(row for name in sorted(outcomes) for row in _evidence(outcomes[name])),
        quadrants=tuple(pair for name in sorted(outcomes) for pair in _quadrants(outcomes[name])),
        step_reports=tuple(_report(run, facts, each, published) for each in facts.proposals),
        evolution_records=tuple(_records(facts, published)),
        changes=tuple(_change(run, position, outcomes[version.task_type], version) for version in versions),
    )
    return decision, after


def _published(facts: StepFacts, versions: Sequence[AcceptedVersion]) -> dict[str, str]:
    """The name each accepted version will have, by type; skills and prompts are numbered apart."""
    names: dict[str, str] = {}
    for kind, existing in facts.existing_versions.items():
        types = [version.task_type for version in versions if version.kind == kind]
        names.update(zip(types, upcoming_versions(existing, len(types)), strict=True))
    return names


def state_after(run: TrainingRun, state: TrainerState, facts: StepFacts) -> TrainerState:
    """The trainer's state after a step: cooldowns, refused proposals and provisional accepts."""
    refused: list[str] = []
    for each in facts.proposals:
        outcome = facts.judgement.outcomes.get(each.task_type)
        if outcome is not None and outcome.accepted:
            state = _with_accept(state, each, outcome, facts.bases[each.kind].texts)
        elif outcome is not None:
            refused.append(each.task_type)
            state = with_rejected(state, each.task_type, _refusal(each, outcome), run.settings.rejected_edits_kept)
        elif each.skip_action == "REJECTED_EDIT":
            state = with_rejected(state, each.task_type, _refusal(each, None), run.settings.rejected_edits_kept)
    cooldowns = cooldowns_after(state.cooldowns, refused, facts.position.global_step, run.settings.gate_cooldown)
    return replace(state, cooldowns=cooldowns)


def _with_accept(
    state: TrainerState, proposal: TypeProposal, outcome: GateOutcome, texts: Mapping[str, str]
) -> TrainerState:
    target = proposal.pack.target_file if proposal.pack is not None else ""
    if proposal.kind == "prompts":
        in_force = prompts_fingerprint({**texts, target: proposal.candidate_text})
        return replace(state, prompts_fingerprint=in_force)
    for task_type, probation in state.probation.items():
        if probation.target_file == target:
            state = without_probation(state, task_type)
    if outcome.verdict.decision == "accept_provisional":
        probation = Probation(
            task_type=proposal.task_type,
            target_file=target,
            predecessor_text=texts[target],
            current_text=proposal.candidate_text,
            fingerprint=proposal.fingerprint,
            edits=_edits(proposal),
        )
        state = with_probation(state, probation)
    return state


def _refusal(proposal: TypeProposal, outcome: GateOutcome | None) -> RejectedEdit:
    if outcome is None:
        reason = proposal.skip_reason
    else:
        verdict = outcome.verdict
        reason = (
            f"{verdict.decision.upper()}: {verdict.reason} "
            f"(W={verdict.w}, L={verdict.l}, E={verdict.e_value:.3g}, {verdict.n_used} units)"
        )
    return RejectedEdit(proposal.fingerprint or text_sha256(proposal.skip_reason), _edits(proposal), reason)


def _edits(proposal: TypeProposal) -> tuple[Edit, ...]:
    return tuple(each.edit for each in proposal.proposal.edits) if proposal.proposal is not None else ()


def _evidence(outcome: GateOutcome) -> list[GateEvidence]:
    return [
        GateEvidence(
            outcome.task_type,
            row.ladder_rank,
            row.unit_id,
            row.base_correct,
            row.cand_correct,
            row.e_value,
            row.w,
            row.l,
        )
        for row in outcome.evidence
    ]


def _quadrants(outcome: GateOutcome) -> list[QuadrantPair]:
    """The pairs that the gate counted; which others came back before the verdict froze is a matter of arrival."""
    return [
        QuadrantPair(outcome.task_type, each.unit_id, _QUADRANTS[each.base, each.cand], each.consumed)
        for each in outcome.observed
        if each.consumed and (each.base, each.cand) in _QUADRANTS
    ]


def _report(run: TrainingRun, facts: StepFacts, proposal: TypeProposal, published: Mapping[str, str]) -> StepReport:
    outcome = facts.judgement.outcomes.get(proposal.task_type)
    action, reason = proposal.skip_action, proposal.skip_reason
    if outcome is None and not action:
        action, reason = facts.gate_input.withheld[proposal.task_type]
    skipped = StepReport(
        task_type=proposal.task_type,
        gate_action=action,
        stop_reason=reason,
        rollout_accuracy=facts.rollout_accuracy.get(proposal.task_type),
        edit_budget=run.edit_budget(facts.position),
        rank_clip_triggered=proposal.proposal is not None and proposal.proposal.rank_clip_triggered,
    )
    if outcome is None:
        return skipped
    return replace(
        skipped,
        gate_action=outcome.verdict.decision.upper(),
        stop_reason=outcome.verdict.reason,
        base_accuracy=outcome.base_accuracy,
        cand_accuracy=outcome.cand_accuracy,
        w=outcome.verdict.w,
        l=outcome.verdict.l,
        e_value=outcome.verdict.e_value,
        n_used=outcome.n_used,
        n_planned=outcome.n_planned,
        excluded=outcome.excluded,
        launched=outcome.launched,
        cache_hits=outcome.cache_hits,
        verdict_json=json.dumps(asdict(outcome.verdict), sort_keys=True),
        detectable_gain=outcome.detectable_gain,
        peak_in_flight=outcome.peak_in_flight,
        endpoint_error_rate=facts.judgement.endpoint_error_rates[proposal.task_type],
        wall_seconds=outcome.wall_seconds,
        accepted_version=published.get(proposal.task_type, ""),
    )


def _records(facts: StepFacts, published: Mapping[str, str]) -> list[EvolutionRecord]:
    """One record a target: of two types that wanted the same file, the one that had it."""
    records: dict[str, EvolutionRecord] = {}
    for each in facts.proposals:
        if each.pack is None or each.proposal is None or each.task_type in facts.gate_input.withheld:
            continue
        target = each.pack.target_file
        records[target] = _record(facts, each, target, each.proposal, published)
    return [records[target] for target in sorted(records)]


def _record(
    facts: StepFacts, proposal: TypeProposal, target: str, made: Proposal, published: Mapping[str, str]
) -> EvolutionRecord:
    outcome = facts.judgement.outcomes.get(proposal.task_type)
    base = facts.bases[proposal.kind]
    rejections = [*made.errors, *proposal.notes]
    if outcome is not None and not outcome.accepted:
        rejections.append(_refusal(proposal, outcome).reason)
    return EvolutionRecord(
        target=target,
        task_type=proposal.task_type,
        status=_status(proposal, outcome),
        edits_json=json.dumps([asdict(each) for each in made.edits]),
        ranks_json=json.dumps(list(made.ranks)),
        rejections_json=json.dumps(rejections),
        attempts=made.attempts,
        base_version=base.version,
        accepted_version=published.get(proposal.task_type, ""),
        cases_json=json.dumps(_cases(proposal)),
        unified_diff=_diff(target, base.texts[target], proposal.candidate_text),
    )


def _status(proposal: TypeProposal, outcome: GateOutcome | None) -> str:
    if outcome is not None:
        return "accepted" if outcome.accepted else "rejected"
    return "rejected" if proposal.skip_action == "REJECTED_EDIT" else "skipped"


def _cases(proposal: TypeProposal) -> list[dict[str, Any]]:
    """The failures that the optimizer was shown; `evidence` is what each diagnosis rests on, by stage."""
    cases = proposal.pack.failures if proposal.pack is not None else ()
    return [
        {
            "question_id": case.question_id,
            "unit_id": case.unit_id,
            "tier": case.diagnosis.tier,
            "category": case.diagnosis.category,
            "cause": case.diagnosis.cause,
            "why": case.diagnosis.why,
            "evidence": json.loads(case.diagnosis.evidence_json or "{}"),
        }
        for case in cases
        if case.diagnosis is not None
    ]


def _diff(name: str, old: str, new: str) -> str:
    if not new:
        return ""
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), name, name)
    return "".join(lines)


def _change(run: TrainingRun, position: Position, outcome: GateOutcome, version: AcceptedVersion) -> VersionChange:
    verdict = outcome.verdict
    return VersionChange(
        kind=version.kind,
        overrides=version.overrides,
        source="evolution",
        trigger_run=run_ids.gate_prefix(run.run_id, position.epoch, position.step, version.task_type),
        description=(
            f"{version.task_type}: {verdict.decision.upper()}, "
            f"W {verdict.w}, L {verdict.l}, E {verdict.e_value:.3g} over {verdict.n_used} units"
        ),
    )
