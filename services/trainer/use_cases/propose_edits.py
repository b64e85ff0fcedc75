"""Phase A of a step: one proposal per task type, all in parallel, or the reason why there is none (TRN-7)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.skills import text_sha256
from services.trainer.domain.cooldown import on_cooldown
from services.trainer.domain.diagnoses import CasePack
from services.trainer.domain.evolution import AppendixRequest, Proposal, ProposalRequest
from services.trainer.domain.prompt_targets import SKILLS_TARGET
from services.trainer.domain.schedule import Position
from services.trainer.domain.trainer_state import TrainerState
from services.trainer.use_cases.training_run import TrainingRun


@dataclass(frozen=True, slots=True)
class TypeProposal:
    """What phase A made of one type: a candidate text for the gate, or the action and reason of its skip report.

    `kind` is skills, or prompts for the proposal about a prompt, whose `task_type` is the name of its gate.
    """

    task_type: str
    pack: CasePack | None
    proposal: Proposal | None
    candidate_text: str
    fingerprint: str
    skip_action: str
    skip_reason: str
    notes: tuple[str, ...] = ()
    kind: str = "skills"

    @property
    def is_candidate(self) -> bool:
        """Whether it goes to the gate."""
        return not self.skip_action


async def propose_edits(
    run: TrainingRun,
    position: Position,
    state: TrainerState,
    skill_texts: Mapping[str, str],
    batch_types: Sequence[str],
    packs: Sequence[CasePack],
) -> list[TypeProposal]:
    """One entry for each type of the batch, in alphabetical order."""
    by_type = {pack.task_type: pack for pack in packs}
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_propose(run, position, state, skill_texts, task_type, by_type.get(task_type)))
                for task_type in sorted(batch_types)
            ]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]


async def _propose(
    run: TrainingRun,
    position: Position,
    state: TrainerState,
    skill_texts: Mapping[str, str],
    task_type: str,
    pack: CasePack | None,
) -> TypeProposal:
    if SKILLS_TARGET not in run.settings.targets:
        return _skip(task_type, pack, "SKIP_NOT_A_TARGET", "skills are not among the targets of this run")
    if on_cooldown(state.cooldowns, task_type, position.global_step):
        until = state.cooldowns[task_type] - position.global_step
        return _skip(task_type, pack, "SKIP_COOLDOWN", f"rejected lately; tries again in {until} steps")
    if pack is None or not pack.failures:
        return _skip(task_type, pack, "SKIP_NO_CASES", "no wrong answer of this type in the batch")
    current = skill_texts[pack.target_file]
    rejected = state.rejected.get(task_type, ())
    proposal = await run.services.evolver.propose(
        ProposalRequest(
            workspace=run.workspace,
            run_id=run.run_id,
            case_pack=pack,
            current_text=current,
            edit_budget=run.edit_budget(position),
            rejected=rejected,
            update_mode=run.settings.skill_update_mode,
            target_kind="skill",
            leak_guards=run.leak_guards(),
        )
    )
    reasons = "; ".join(proposal.errors) or "the optimizer proposed no change"
    if proposal.status == "rejected":
        return _skip(task_type, pack, "REJECTED_EDIT", reasons, proposal)
    if proposal.status == "repeated":
        return _skip(task_type, pack, "SKIP_REPEATED", "the proposal equals one that was refused", proposal)
    edited = proposal.candidate_text if proposal.status == "candidate" else current
    text, notes = await _with_reminders(run, pack, edited)
    if text == current:
        return _skip(task_type, pack, "SKIP_UNCHANGED", reasons, proposal)
    fingerprint = proposal.fingerprint or text_sha256(text)
    if fingerprint in {each.fingerprint for each in rejected}:
        return _skip(task_type, pack, "SKIP_REPEATED", "the proposal equals one that was refused", proposal)
    return TypeProposal(task_type, pack, proposal, text, fingerprint, "", "", notes)


async def _with_reminders(run: TrainingRun, pack: CasePack, text: str) -> tuple[str, tuple[str, ...]]:
    """The text with one reminder for each lapse in its appendix (EVO-9)."""
    reminders = tuple(
        case.diagnosis.reminder
        for case in pack.failures
        if case.diagnosis is not None and case.diagnosis.cause == "lapse" and case.diagnosis.reminder
    )
    if not reminders:
        return text, ()
    request = AppendixRequest(run.workspace, run.run_id, text, reminders, run.leak_guards())
    update = await run.services.evolver.consolidate_appendix(request)
    return update.text, update.errors


def _skip(
    task_type: str, pack: CasePack | None, action: str, reason: str, proposal: Proposal | None = None
) -> TypeProposal:
    return TypeProposal(task_type, pack, proposal, "", proposal.fingerprint if proposal else "", action, reason)
