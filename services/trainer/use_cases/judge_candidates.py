"""Phases B and C of a step: one gate spec a candidate, then one round that judges them all (TRN-7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.trainer.domain.endpoints import error_rate
from services.trainer.domain.errors import MissingResults, ServiceFailed
from services.trainer.domain.gate_round import GateOutcome, GateRound, GateSpec, RoundOptions, RoundOutcome
from services.trainer.domain.ladders import LadderCandidate, LadderUnit
from services.trainer.domain.pools import PoolUnit
from services.trainer.domain.prompt_targets import confirmed_only
from services.trainer.domain.schedule import Position
from services.trainer.domain.settlement import Candidate, disjoint_targets
from services.trainer.domain.workspaces import Manifest
from services.trainer.use_cases.propose_edits import TypeProposal
from services.trainer.use_cases.training_run import TrainingRun


@dataclass(frozen=True, slots=True)
class GateInput:
    """What goes to the gate, and what is kept from it: (action, reason) by type."""

    candidates: tuple[Candidate, ...]
    specs: tuple[GateSpec, ...]
    withheld: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of each judged type, and the endpoints' error rate during its round (None: not recorded)."""

    outcomes: Mapping[str, GateOutcome]
    endpoint_error_rates: Mapping[str, float | None]

    @property
    def accepted(self) -> bool:
        """Whether anything was accepted."""
        return any(outcome.accepted for outcome in self.outcomes.values())


async def assemble_gates(run: TrainingRun, position: Position, proposals: Sequence[TypeProposal]) -> GateInput:
    """Phase B: disjoint targets, ladders, exclusions.

    Raises MissingResults for a unit that has neither an estimate nor a baseline result.
    """
    packs = {each.task_type: each.pack for each in proposals if each.is_candidate and each.pack is not None}
    texts = {each.task_type: each.candidate_text for each in proposals}
    kinds = {each.task_type: each.kind for each in proposals}
    wanted = [
        Candidate(task_type, pack.target_file, texts[task_type], kinds[task_type]) for task_type, pack in packs.items()
    ]
    kept, clashes = disjoint_targets(wanted)
    withheld = {
        clash.candidate.task_type: (
            "SKIP_TARGET_TAKEN",
            f"{clash.taken_by} edits {clash.candidate.target_file} in this step",
        )
        for clash in clashes
    }
    estimates = {
        each.unit_id: each.estimate for each in await run.services.ledger.unit_estimates(run.workspace, run.run_id)
    }
    candidates: list[Candidate] = []
    specs: list[GateSpec] = []
    for candidate in kept:
        ladder = await _ladder(run, position, candidate, packs[candidate.task_type].unit_ids, estimates)
        if not ladder:
            withheld[candidate.task_type] = ("SKIP_NO_LADDER", "the proposer saw every unit that could judge it")
            continue
        candidates.append(candidate)
        specs.append(_spec(run, candidate, ladder))
    return GateInput(tuple(candidates), tuple(specs), withheld)


async def judge_candidates(
    run: TrainingRun, position: Position, manifest: Manifest, gate_input: GateInput
) -> Judgement:
    """Phase C: one round for all types. A failed or cut-off round raises ServiceFailed; nothing is scored then."""
    if not gate_input.specs:
        return Judgement({}, {})
    before = await run.services.models.endpoints()
    gate_round = GateRound(
        workspace=run.workspace,
        run_id=run.run_id,
        epoch=position.epoch,
        step=position.step,
        dataset=run.dataset,
        skills_version=manifest.current.skills,
        prompts_version=manifest.current.prompts,
        specs=gate_input.specs,
        options=RoundOptions(
            concurrency=run.settings.concurrency,
            cancel_in_flight=run.settings.cancel_in_flight,
            max_speculation=run.settings.max_speculation,
            guard_error_share=run.settings.gate_guard_err,
        ),
        agent=run.agent_options(),
    )
    outcome: RoundOutcome | None = None
    async for event in run.services.gate.validate(gate_round):
        run.progress.gate_event(event)
        if isinstance(event, RoundOutcome):
            outcome = event
    if outcome is None:
        raise ServiceFailed("gate", "DATA_LOSS", "the round ended without an outcome; run the command again")
    after = await run.services.models.endpoints()
    rate = error_rate(before, after)
    outcomes = {each.task_type: each for each in outcome.outcomes}
    return Judgement(outcomes, dict.fromkeys(outcomes, rate))


def _spec(run: TrainingRun, candidate: Candidate, ladder: tuple[LadderUnit, ...]) -> GateSpec:
    parameters, target = run.settings.verdict_parameters, "skill"
    if candidate.kind == "prompts":
        parameters, target = confirmed_only(parameters), "prompt"
    return GateSpec(candidate.task_type, candidate.target_file, candidate.text, ladder, parameters, target)


async def _ladder(
    run: TrainingRun,
    position: Position,
    candidate: Candidate,
    seen_units: Sequence[str],
    estimates: Mapping[str, float],
) -> tuple[LadderUnit, ...]:
    task_type, all_types = candidate.task_type, candidate.kind == "prompts"
    units = [unit for unit in (*run.diag, *run.val) if all_types or unit.task_type == task_type]
    missing = [unit.unit_id for unit in units if unit.unit_id not in estimates and unit.unit_id not in run.baseline]
    if missing:
        raise MissingResults("ladder units have no baseline result", missing, "run `videotree baseline` again")
    ladder = await run.services.gate.build_ladder(
        # The run's id stands for the workspace in the seed: another run of one workspace draws another order.
        run.run_id,
        task_type,
        position.epoch,
        position.step,
        [_ladder_candidate(run, unit, estimates.get(unit.unit_id)) for unit in units],
        seen_units,
        run.settings.gate_n_max,
    )
    return tuple(rung.unit for rung in ladder.rungs)


def _ladder_candidate(run: TrainingRun, unit: PoolUnit, estimate: float | None) -> LadderCandidate:
    known = run.baseline.get(unit.unit_id)
    return LadderCandidate(
        unit=LadderUnit(unit.unit_id, unit.question_ids),
        estimate=estimate,
        baseline_right_count=int(known is True),
        baseline_count=int(known is not None),
    )
