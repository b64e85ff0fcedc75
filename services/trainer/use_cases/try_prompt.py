"""A prompt's turn in a step: proposed from the cases of all types and judged in a round of its own (EVO-12).

It comes after the skills' round and only where no skill was accepted: the candidate is tested with the skills of the
step's start, and must not be put in force with others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.skills import text_sha256
from services.trainer.domain.diagnoses import CasePack
from services.trainer.domain.evolution import Proposal, ProposalRequest
from services.trainer.domain.prompt_targets import PromptTarget, due_prompt, prompt_targets
from services.trainer.domain.schedule import Position
from services.trainer.domain.trainer_state import TrainerState
from services.trainer.domain.versions import Version
from services.trainer.domain.workspaces import Manifest
from services.trainer.use_cases.judge_candidates import GateInput, Judgement, assemble_gates, judge_candidates
from services.trainer.use_cases.propose_edits import TypeProposal
from services.trainer.use_cases.training_run import TrainingRun


@dataclass(frozen=True, slots=True)
class Trial:
    """What one round of a step came to: its proposals, what of them went to the gate, and the verdicts."""

    proposals: tuple[TypeProposal, ...]
    gate_input: GateInput
    judgement: Judgement


def target_of(run: TrainingRun, position: Position, state: TrainerState) -> PromptTarget | None:
    """The prompt whose turn it is in this step; None where no prompt is a target or due."""
    targets = prompt_targets(run.settings.targets, run.settings.solver)
    return due_prompt(targets, run.settings.prompt_every, state.cooldowns, position.global_step)


async def try_prompt(
    run: TrainingRun,
    position: Position,
    state: TrainerState,
    manifest: Manifest,
    target: PromptTarget,
    prompts: Version,
    pooled: CasePack,
    skill_accepted: bool,
) -> Trial:
    """The trial of one prompt, or the report of why there was none."""
    run.progress.phase("prompt proposal", position=position)
    proposed = await _propose(run, position, state, target, prompts, pooled, skill_accepted)
    gate_input = await assemble_gates(run, position, [proposed])
    if gate_input.specs:
        run.progress.phase("prompt gate", sum(len(spec.ladder) for spec in gate_input.specs), position)
    judgement = await judge_candidates(run, position, manifest, gate_input)
    return Trial((proposed,), gate_input, judgement)


def together(trials: Sequence[Trial]) -> Trial:
    """The rounds of one step as one, types in alphabetical order."""
    proposals = sorted((each for trial in trials for each in trial.proposals), key=lambda each: each.task_type)
    inputs, judgements = [trial.gate_input for trial in trials], [trial.judgement for trial in trials]
    return Trial(
        tuple(proposals),
        GateInput(
            tuple(each for one in inputs for each in one.candidates),
            tuple(each for one in inputs for each in one.specs),
            {name: reason for one in inputs for name, reason in one.withheld.items()},
        ),
        Judgement(
            {name: outcome for one in judgements for name, outcome in one.outcomes.items()},
            {name: rate for one in judgements for name, rate in one.endpoint_error_rates.items()},
        ),
    )


async def _propose(
    run: TrainingRun,
    position: Position,
    state: TrainerState,
    target: PromptTarget,
    prompts: Version,
    pooled: CasePack,
    skill_accepted: bool,
) -> TypeProposal:
    pack = replace(pooled, task_type=target.gate_name, target_file=target.file)
    if skill_accepted:
        return _skip(
            pack, "SKIP_SKILL_ACCEPTED", "a skill was accepted in this step; the prompt waits for its next turn"
        )
    if not pack.failures:
        return _skip(pack, "SKIP_NO_CASES", "no wrong answer in the batch")
    rejected = state.rejected.get(target.gate_name, ())
    proposal = await run.services.evolver.propose(
        ProposalRequest(
            workspace=run.workspace,
            run_id=run.run_id,
            case_pack=pack,
            current_text=prompts.texts[target.file],
            edit_budget=run.edit_budget(position),
            rejected=rejected,
            update_mode="patch",
            target_kind=target.kind,
            leak_guards=run.leak_guards(),
        )
    )
    reasons = "; ".join(proposal.errors) or "the optimizer proposed no change"
    if proposal.status == "candidate":
        text, fingerprint = proposal.candidate_text, proposal.fingerprint or text_sha256(proposal.candidate_text)
        return TypeProposal(target.gate_name, pack, proposal, text, fingerprint, "", "", kind="prompts")
    if proposal.status == "rejected":
        return _skip(pack, "REJECTED_EDIT", reasons, proposal)
    if proposal.status == "repeated":
        return _skip(pack, "SKIP_REPEATED", "the proposal equals one that was refused", proposal)
    return _skip(pack, "SKIP_UNCHANGED", reasons, proposal)


def _skip(pack: CasePack, action: str, reason: str, proposal: Proposal | None = None) -> TypeProposal:
    fingerprint = proposal.fingerprint if proposal else ""
    return TypeProposal(pack.task_type, pack, proposal, "", fingerprint, action, reason, kind="prompts")
