"""Agent, models, gate and evolver behind the trainer's ports, deterministic by what a `World` says."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from services.skills import skill_file, slug
from services.trainer.domain.answering import Answer, AnswerJob
from services.trainer.domain.diagnoses import (
    Case,
    CaseDiagnosis,
    CasePack,
    DiagnoseJob,
    DiagnoseProgress,
    DiagnoseResult,
)
from services.trainer.domain.endpoints import CacheStats, Endpoint
from services.trainer.domain.errors import ServiceFailed
from services.trainer.domain.evolution import (
    AppendixRequest,
    AppendixUpdate,
    Edit,
    EditResult,
    Proposal,
    ProposalRequest,
    SkillText,
    SlowUpdate,
    SlowUpdateRequest,
)
from services.trainer.domain.gate_round import (
    EvidenceRow,
    GateOutcome,
    GateRound,
    GateSpec,
    PairConsumed,
    ProbationPair,
    ProbationReview,
    RoundOutcome,
    UnitObserved,
    Verdict,
    VerdictFrozen,
)
from services.trainer.domain.ladders import Ladder, LadderCandidate, LadderRung
from services.trainer.domain.runs import Prediction
from services.trainer.domain.unit_results import INFRA_STOP_REASONS
from tests.fakes.trainer_world import World


class FakeAgent:
    """Answers by the texts in force; writes the prediction before it streams the answer."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def answer(self, job: AnswerJob) -> AsyncIterator[Answer]:
        texts = {**self.world.in_force(job.skills_version, job.prompts_version), **job.overrides}
        wanted = {question.question_id: question for question in self.world.questions}
        for question_id in job.question_ids:
            done = self.world.predictions.get((job.run_id, question_id)) if job.resume else None
            if done and done.stop_reason in INFRA_STOP_REASONS:
                done = None
            made = done or self.world.record_answer(job.run_id, job.salt, wanted[question_id], texts)
            yield Answer(
                question_id,
                made.unit_id,
                made.task_type,
                made.prediction,
                made.correct,
                made.stop_reason,
                2,
                3,
                0,
                100,
                10,
                done is not None,
                made.error_detail,
            )


class FakeModels:
    """One endpoint."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def endpoints(self) -> tuple[Endpoint, ...]:
        attempts = len(self.world.predictions)
        return (Endpoint("llm", "http://x", "m", ("agent",), "closed", 0, None, 0, 0, 8, attempts, 0, ""),)

    async def probe(self, role: str) -> None:
        if self.world.endpoint_down:
            raise ServiceFailed("inference", "UNAVAILABLE", "connection refused")

    async def cache_stats(self) -> CacheStats:
        return CacheStats("disk", 3, None, 0, 0, 0, 604800.0)


class FakeGate:
    """Runs both arms on the whole ladder and accepts from a net of three wins on."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def build_ladder(
        self,
        namespace: str,
        task_type: str,
        epoch: int,
        step: int,
        candidates: Sequence[LadderCandidate],
        excluded_unit_ids: Sequence[str],
        n_max: int,
    ) -> Ladder:
        kept = [each for each in candidates if each.unit.unit_id not in excluded_unit_ids][:n_max]
        return Ladder(tuple(LadderRung(each.unit, 0.5, 0) for each in kept), len(candidates) - len(kept), 0)

    async def validate(self, gate_round: GateRound) -> AsyncIterator[Any]:
        outcomes = []
        for spec in sorted(gate_round.specs, key=lambda each: each.task_type):
            outcome = self._outcome(gate_round, spec)
            yield PairConsumed(
                spec.task_type, outcome.evidence[-1], outcome.n_used, outcome.launched, outcome.n_planned
            )
            yield VerdictFrozen(spec.task_type, outcome.verdict)
            outcomes.append(outcome)
        yield RoundOutcome(tuple(outcomes), 0.5)

    async def review_probation(self, pairs: Sequence[ProbationPair], *rest: Any) -> ProbationReview:
        wins = sum(each.current_correct and not each.predecessor_correct for each in pairs)
        losses = sum(each.predecessor_correct and not each.current_correct for each in pairs)
        decision = "roll_back" if losses > wins else "confirmed" if wins > losses else "continue"
        return ProbationReview(decision, "by the fake's rule", wins, losses, len(pairs))

    def _outcome(self, gate_round: GateRound, spec: GateSpec) -> GateOutcome:
        base_texts = self.world.in_force(gate_round.skills_version, gate_round.prompts_version)
        cand_texts = {**base_texts, spec.target_file: spec.candidate_text}
        prefix = f"{gate_round.run_id}_e{gate_round.epoch}_s{gate_round.step}_gate_{slug(spec.task_type)}"
        wanted = {question.question_id: question for question in self.world.questions}
        rows, seen, w, losses = [], [], 0, 0
        for rank, unit in enumerate(spec.ladder):
            question = wanted[unit.question_ids[0]]
            base = self.world.record_answer(f"{prefix}_base", "gate-base", question, base_texts).correct
            cand = self.world.record_answer(f"{prefix}_cand", f"{prefix}_cand", question, cand_texts).correct
            w, losses = w + (cand and not base), losses + (base and not cand)
            rows.append(EvidenceRow(rank, unit.unit_id, base, cand, 2.0 ** (w - losses), w, losses))
            words = ("wrong", "right")
            seen.append(UnitObserved(rank, unit.unit_id, words[base], words[cand], True, False))
        seen.append(UnitObserved(len(rows), f"looked ahead {len(seen)}", "right", "wrong", False, False))
        provisional = self.world.provisional and spec.target == "skill"
        accept = "accept_provisional" if provisional else "accept_confirmed"
        decision = accept if w - losses >= 3 else "reject_exhausted"
        n = len(rows)
        verdict = Verdict(
            decision, f"W={w} L={losses}", 2.0 ** (w - losses), 0.0, w, losses, n, 0, spec.parameters, "fake"
        )
        return GateOutcome(
            spec.task_type,
            verdict,
            0.5,
            0.6,
            n,
            n,
            0,
            n,
            0,
            decision,
            tuple(rows),
            tuple(seen),
            0.1,
            0.0,
            0.0,
            0.3,
            2 * n,
            6 * n,
            0,
            660 * n,
            4,
        )


class FakeEvolver:
    """Packs every wrong answer of a run and proposes what the world says for the type."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def diagnose(self, job: DiagnoseJob) -> AsyncIterator[Any]:
        self.world.diagnosed.append(job)
        answers = [each for (run, _), each in sorted(self.world.predictions.items()) if run == job.run_id]
        yield DiagnoseProgress(len(answers), len(answers))
        wrong = [each for each in answers if not each.correct]
        found = [_diagnosis(each) for each in wrong]
        fresh = [each for each in found if each.fingerprint not in job.known_fingerprints]
        packs = []
        for task_type in sorted({each.task_type for each in wrong}):
            cases = tuple(Case(d.question_id, d.unit_id, "text", d, False) for d in found if d.task_type == task_type)
            cases = cases[:2]
            target = skill_file(task_type, self.world.texts("skills", job.skills_version))
            packs.append(CasePack(task_type, target, cases, (), "{}", tuple(case.unit_id for case in cases)))
        pooled = None
        if job.with_pooled_pack:
            cases = tuple(case for pack in packs for case in pack.failures)
            pooled = CasePack("", "", cases, (), "{}", tuple(case.unit_id for case in cases))
        right = len(answers) - len(wrong)
        yield DiagnoseResult(tuple(fresh), tuple(packs), right, len(wrong), 0, 0, len(found) - len(fresh), pooled)

    async def propose(self, request: ProposalRequest) -> Proposal:
        self.world.asked.append(request)
        word = self.world.proposals.get(request.case_pack.task_type, "")
        if not word or word in request.current_text:
            return Proposal("skipped", "", (), (), ("nothing to change",), False, (), 1, "", "")
        text = f"{request.current_text}{word}\n"
        fingerprint = hashlib.sha256(text.encode()).hexdigest()
        if fingerprint in {each.fingerprint for each in request.rejected}:
            return Proposal("repeated", "", (), (), (), False, (), 1, fingerprint, "")
        edit = EditResult(Edit("append", "", word, "it helps", ("q",)), "applied", "")
        return Proposal("candidate", text, (edit,), (), (), False, (), 1, fingerprint, "diff")

    async def consolidate_appendix(self, request: AppendixRequest) -> AppendixUpdate:
        return AppendixUpdate(request.skill_text, 0, False, ())

    async def slow_update(self, request: SlowUpdateRequest) -> SlowUpdate:
        if not self.world.slow_text:
            return SlowUpdate((), (), 1)
        return SlowUpdate(tuple(SkillText(s.name, s.text + self.world.slow_text) for s in request.skills), (), 1)


def _diagnosis(prediction: Prediction) -> CaseDiagnosis:
    return CaseDiagnosis(
        prediction.question_id,
        prediction.unit_id,
        prediction.task_type,
        f"fp-{prediction.question_id}",
        "t2",
        "missed_nodes",
        "defect",
        False,
        "never looked",
        "{}",
        "{}",
        "",
    )
