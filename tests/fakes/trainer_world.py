"""A whole world for the trainer in memory: store, agent, gate and evolver behind its ports, deterministic by text.

An agent is right on a question with a probability that the skill's text decides: it contains GOOD, BAD or neither.
The draw depends on run salt, question and text only, so that a repeated piece of work gives the same answers.
Any call can be made to crash, before or after it had its effect.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from services.questions import Question
from services.skills import skill_file, slug
from services.trainer.domain.answering import Answer, AnswerJob
from services.trainer.domain.endpoints import CacheStats, Endpoint
from services.trainer.domain.errors import ServiceFailed
from services.trainer.domain.evolution import (
    AppendixRequest,
    AppendixUpdate,
    Case,
    CaseDiagnosis,
    CasePack,
    DiagnoseJob,
    DiagnoseProgress,
    DiagnoseResult,
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
    Ladder,
    LadderCandidate,
    LadderRung,
    PairConsumed,
    ProbationPair,
    ProbationReview,
    RoundOutcome,
    UnitObserved,
    Verdict,
    VerdictFrozen,
)
from services.trainer.domain.records import (
    Best,
    CallSummary,
    Checkpoint,
    Committed,
    CurrentVersions,
    Diagnosis,
    DualMetric,
    EpochDecision,
    EvolutionRecordRow,
    Fingerprints,
    GateEvidenceRow,
    HoldoutEval,
    HoldoutRow,
    HoldoutTable,
    Manifest,
    Pools,
    PoolUnit,
    Prediction,
    QuadrantPairRow,
    Run,
    StepDecision,
    StepReportRow,
    UnitEstimate,
    Version,
    VersionChange,
    VersionFile,
)
from services.trainer.use_cases.ports import Services

TYPES = ("Action Reasoning", "Counting Problem", "Object Recognition")


class Crash(BaseException):
    """The process died here."""


def draw(*parts: str) -> float:
    """A number in [0, 1) that depends on the parts only."""
    return int.from_bytes(hashlib.sha256("|".join(parts).encode()).digest()[:4], "big") / 2**32


class World:
    """All state, and the knobs a test turns. `steps_of_life` counts calls until the crash (None: immortal)."""

    def __init__(self, units_per_type: int = 20) -> None:
        self.questions = [
            Question(
                f"{slug(kind)}-{n:02}",
                f"video-{slug(kind)}-{n:02}",
                kind,
                f"{kind} {n}?",
                ("yes", "no"),
                "A",
                f"{slug(kind)}-{n:02}",
            )
            for kind in TYPES
            for n in range(units_per_type)
        ]
        pool = {0: "test", 1: "val", 2: "val"}
        self.pools = Pools(
            "baseline",
            "set",
            tuple(
                PoolUnit(q.unit_id, q.task_type, q.video_id, (q.question_id,), pool.get(n % 5, "diag"))
                for n, q in enumerate(self.questions)
            ),
            "pools-sha",
        )
        skills = {f"{slug(kind)}.md": f"{kind}: look.\n" for kind in TYPES} | {"default-strategy.md": "look.\n"}
        self.versions = {"skills": [version("skills", "v1", "", skills)], "prompts": [version("prompts", "v1", "", {})]}
        self.manifest = Manifest(
            "lab", CurrentVersions("all", "set", "v1", "v1"), Best(), "pools-sha", "baseline", "seed", "1"
        )
        self.predictions: dict[tuple[str, str], Prediction] = {}
        self.runs: dict[str, Run] = {}
        self.checkpoints: dict[str, Checkpoint] = {}
        self.steps: dict[tuple[int, int], StepDecision] = {}
        self.epochs: dict[int, EpochDecision] = {}
        self.estimates: dict[str, UnitEstimate] = {}
        self.holdouts: dict[tuple[str, str], HoldoutEval] = {}
        self.lines: dict[tuple[int, str], HoldoutRow] = {}
        self.diagnoses: dict[str, Diagnosis] = {}
        self.intents: list[tuple[str, int]] = []
        self.proposals: Mapping[str, str] = {TYPES[0]: "GOOD", TYPES[1]: "BAD"}
        self.slow_text = ""
        self.provisional = False
        self.endpoint_down = False
        self.calls: list[str] = []
        self.crash_at: int | None = None
        self.crash_after_effect = False
        for question in self.questions:
            self._answer("baseline", None, question, skills)

    def services(self) -> Services:
        """The ports over this world, each call counted and able to crash."""
        store, model = FakeStore(self), FakeModels(self)
        guarded: dict[str, Any] = {}
        for field in dataclasses.fields(Services):
            target = {"agent": FakeAgent, "gate": FakeGate, "evolver": FakeEvolver}.get(field.name)
            fake = target(self) if target else (model if field.name == "models" else store)
            guarded[field.name] = Guarded(self, field.name, fake)
        return Services(**guarded)

    def texts(self, kind: str, name: str) -> dict[str, str]:
        return next(each for each in self.versions[kind] if each.version == name).texts

    def right(self, salt: str | None, question: Question, texts: Mapping[str, str]) -> bool:
        """Whether an agent with these skills is right on a question."""
        text = texts[skill_file(question.task_type, texts)]
        chance = 0.95 if "GOOD" in text else 0.05 if "BAD" in text else 0.5
        return draw(str(salt), question.question_id, text) < chance

    def _answer(self, run_id: str, salt: str | None, question: Question, texts: Mapping[str, str]) -> Prediction:
        right = self.right(salt, question, texts)
        made = Prediction(
            run_id,
            question.question_id,
            question.video_id,
            question.task_type,
            "A" if right else "B",
            "A",
            right,
            "error" if self.endpoint_down else "finished",
            2,
            100,
            10,
            3,
            0,
            "connection refused" if self.endpoint_down else "",
            question.unit_id,
        )
        self.predictions[run_id, question.question_id] = made
        return made


def version(kind: str, name: str, parent: str, texts: Mapping[str, str], trigger: str = "") -> Version:
    files = tuple(
        VersionFile(file, texts[file], hashlib.sha256(texts[file].encode()).hexdigest()) for file in sorted(texts)
    )
    return Version(
        kind, name, parent, "evolution", trigger, "", files, hashlib.sha256(repr(files).encode()).hexdigest()
    )


class Silent:
    """Progress that nobody watches."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def phase(self, *args: Any, **kwargs: Any) -> None: ...
    def answered(self, answer: Any) -> None: ...
    def advanced(self, done: int, total: int) -> None: ...
    def gate_event(self, event: Any) -> None: ...
    def note(self, text: str) -> None:
        self.notes.append(text)


class Guarded:
    """A port whose calls are counted; the one the world names crashes, before or after its effect."""

    def __init__(self, world: World, name: str, target: Any) -> None:
        self._world, self._name, self._target = world, name, target

    def __getattr__(self, method: str) -> Callable[..., Any]:
        call = getattr(self._target, method)
        if method in {"answer", "validate", "diagnose", "score_evidence"}:
            return lambda *args, **kwargs: self._stream(method, call, args, kwargs)

        async def guarded(*args: Any, **kwargs: Any) -> Any:
            doomed = self._count(method)
            if doomed and not self._world.crash_after_effect:
                raise Crash
            result = await call(*args, **kwargs)
            if doomed:
                raise Crash
            return result

        return guarded

    async def _stream(self, method: str, call: Any, args: Any, kwargs: Any) -> AsyncIterator[Any]:
        doomed = self._count(method)
        if doomed and not self._world.crash_after_effect:
            raise Crash
        async for item in call(*args, **kwargs):
            yield item
            if doomed:
                raise Crash

    def _count(self, method: str) -> bool:
        self._world.calls.append(f"{self._name}.{method}")
        return self._world.crash_at is not None and len(self._world.calls) == self._world.crash_at


class FakeStore:
    """Library, workspaces, versions, runs and ledger; commits are keyed and atomic."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def questions(self, dataset: str) -> list[Question]:
        return self.world.questions

    async def names(self) -> list[str]:
        return ["lab"]

    async def get(self, *args: str) -> Any:
        if len(args) == 1:
            return self.world.manifest, "/lab"
        if len(args) == 2:
            return self.world.runs[args[1]]
        _, kind, name = args
        return next(each for each in self.world.versions[kind] if each.version == name)

    async def all(self, workspace: str, kind: str = "") -> list[Any]:
        if kind in {"skills", "prompts"}:
            return list(self.world.versions[kind])
        return [run for run in self.world.runs.values() if kind in {"", run.run_kind}]

    async def pools(self, name: str) -> tuple[Pools, str]:
        return self.world.pools, "{}"

    async def record_run(self, name: str, run_id: str) -> Manifest:
        return self.world.manifest

    async def register(self, workspace: str, run: Run) -> bool:
        known = run.run_id in self.world.runs
        old = self.world.runs.get(run.run_id, run)
        self.world.runs[run.run_id] = dataclasses.replace(old, status="running", status_detail="")
        return not known

    async def finish(self, workspace: str, run_id: str, status: str, detail: str) -> None:
        self.world.runs[run_id] = dataclasses.replace(self.world.runs[run_id], status=status, status_detail=detail)

    async def predictions(self, workspace: str, run_id: str) -> list[Prediction]:
        return [each for (run, _), each in sorted(self.world.predictions.items()) if run == run_id]

    async def call_summaries(self, workspace: str, run_id: str) -> list[CallSummary]:
        calls = sum(3 for run, _ in self.world.predictions if run.startswith(f"{run_id}_"))
        return [CallSummary("agent", "OK", "miss", calls, calls * 100, calls * 10, 0)]

    async def clear_step(self, workspace: str, run_id: str, epoch: int, step: int) -> bool:
        if (epoch, step) in self.world.steps:
            return True
        own = f"{run_id}_e{epoch}_s{step}"
        for run, question in list(self.world.predictions):
            if run == own or run.startswith(f"{own}_gate_"):
                del self.world.predictions[run, question]
        return False

    async def commit_step(self, decision: StepDecision) -> Committed:
        key = (decision.epoch, decision.step)
        if key in self.world.steps:
            return Committed((), self.world.manifest, True)
        self.world.steps[key] = decision
        return self._commit(decision.changes, decision.checkpoint)

    async def commit_epoch(self, decision: EpochDecision) -> Committed:
        if decision.epoch in self.world.epochs:
            return Committed((), self.world.manifest, True)
        self.world.epochs[decision.epoch] = decision
        for line in decision.holdout_lines:
            self.world.lines[line.epoch, line.line] = line
        for each in decision.holdout_evals:
            self.world.holdouts[each.skills_version, each.prompts_version] = each
        for seen in decision.observations:
            old = self.world.estimates.get(seen.unit_id, UnitEstimate(seen.unit_id, 0.0, 0, -1))
            count = old.observation_count + 1
            mean = old.estimate + (float(seen.correct) - old.estimate) / count
            self.world.estimates[seen.unit_id] = UnitEstimate(seen.unit_id, mean, count, decision.epoch)
        best = Best(decision.best.hard or self.world.manifest.best.hard, decision.best.mixed)
        self.world.manifest = dataclasses.replace(self.world.manifest, best=best)
        return self._commit(decision.changes, decision.checkpoint)

    def _commit(self, changes: Sequence[VersionChange], checkpoint: Checkpoint) -> Committed:
        made = []
        for change in changes:
            current = self.world.manifest.current.skills
            texts = {**self.world.texts("skills", current), **change.overrides}
            name = f"v{len(self.world.versions['skills']) + 1}"
            made.append(version("skills", name, current, texts, change.trigger_run))
            self.world.versions["skills"].append(made[-1])
            now = dataclasses.replace(self.world.manifest.current, skills=name)
            self.world.manifest = dataclasses.replace(self.world.manifest, current=now)
        self.world.checkpoints[checkpoint.run_id] = checkpoint
        return Committed(tuple(made), self.world.manifest, False)

    async def save_checkpoint(self, workspace: str, checkpoint: Checkpoint) -> None:
        self.world.checkpoints[checkpoint.run_id] = checkpoint

    async def load_checkpoint(self, workspace: str, run_id: str, fingerprints: Fingerprints | None) -> Checkpoint:
        saved = self.world.checkpoints[run_id]
        if fingerprints is not None and saved.fingerprints != fingerprints:
            keys = saved.fingerprints.values.items() ^ fingerprints.values.items()
            raise ServiceFailed("store", "FAILED_PRECONDITION", ", ".join(sorted({key for key, _ in keys})))
        return saved

    async def step_reports(self, workspace: str, run_id: str) -> list[StepReportRow]:
        steps = sorted(self.world.steps.items())
        return [StepReportRow(*key, row) for key, step in steps for row in step.step_reports]

    async def gate_evidence(self, workspace: str, run_id: str) -> list[GateEvidenceRow]:
        steps = sorted(self.world.steps.items())
        return [GateEvidenceRow(*key, row) for key, step in steps for row in step.evidence]

    async def quadrant_pairs(self, workspace: str, run_id: str) -> list[QuadrantPairRow]:
        steps = sorted(self.world.steps.items())
        return [QuadrantPairRow(*key, row) for key, step in steps for row in step.quadrants]

    async def evolution_records(self, workspace: str, run_id: str) -> list[EvolutionRecordRow]:
        steps = sorted(self.world.steps.items())
        return [EvolutionRecordRow(*key, row) for key, step in steps for row in step.evolution_records]

    async def dual_metrics(self, workspace: str, run_id: str) -> list[DualMetric]:
        return [metric for epoch in sorted(self.world.epochs) for metric in self.world.epochs[epoch].dual_metrics]

    async def put_holdout_eval(self, workspace: str, holdout_eval: HoldoutEval) -> None:
        key = (holdout_eval.skills_version, holdout_eval.prompts_version)
        if holdout_eval.how == "intended":
            tests = sum(1 for run, _ in self.world.predictions if "_test_" in run)
            self.world.intents.append((holdout_eval.skills_version, tests))
            self.world.holdouts.setdefault(key, holdout_eval)
        else:
            self.world.holdouts[key] = holdout_eval

    async def holdout_table(self, workspace: str, run_id: str) -> HoldoutTable:
        return HoldoutTable(tuple(self.world.holdouts.values()), tuple(self.world.lines.values()))

    async def unit_estimates(self, workspace: str, run_id: str) -> list[UnitEstimate]:
        return list(self.world.estimates.values())

    async def put_baseline_diagnoses(self, workspace: str, diagnoses: Sequence[Diagnosis]) -> int:
        self.world.diagnoses.update({each.fingerprint: each for each in diagnoses})
        return len(diagnoses)

    async def baseline_diagnoses(self, workspace: str, run_id: str) -> list[Diagnosis]:
        return list(self.world.diagnoses.values())

    async def freeze_pools(self, name: str, pools: Pools, split_manifest_json: str, *, force: bool) -> tuple[str, str]:
        self.world.pools = pools
        return "frozen-sha", ""

    async def write_report(self, workspace: str, name: str, content: bytes) -> str:
        return f"/lab/reports/{name}"


class FakeAgent:
    """Answers by the texts in force; writes the prediction before it streams the answer."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def answer(self, job: AnswerJob) -> AsyncIterator[Answer]:
        texts = {**self.world.texts("skills", job.skills_version), **job.overrides}
        wanted = {question.question_id: question for question in self.world.questions}
        for question_id in job.question_ids:
            done = self.world.predictions.get((job.run_id, question_id)) if job.resume else None
            made = done or self.world._answer(job.run_id, job.salt, wanted[question_id], texts)
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
        base_texts = self.world.texts("skills", gate_round.skills_version)
        cand_texts = {**base_texts, spec.target_file: spec.candidate_text}
        prefix = f"{gate_round.run_id}_e{gate_round.epoch}_s{gate_round.step}_gate_{slug(spec.task_type)}"
        wanted = {question.question_id: question for question in self.world.questions}
        rows, seen, w, losses = [], [], 0, 0
        for rank, unit in enumerate(spec.ladder):
            question = wanted[unit.question_ids[0]]
            base = self.world._answer(f"{prefix}_base", "gate-base", question, base_texts).correct
            cand = self.world._answer(f"{prefix}_cand", f"{prefix}_cand", question, cand_texts).correct
            w, losses = w + (cand and not base), losses + (base and not cand)
            rows.append(EvidenceRow(rank, unit.unit_id, base, cand, 2.0 ** (w - losses), w, losses))
            words = ("wrong", "right")
            seen.append(UnitObserved(rank, unit.unit_id, words[base], words[cand], True, False))
        accept = "accept_provisional" if self.world.provisional else "accept_confirmed"
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
        right = len(answers) - len(wrong)
        yield DiagnoseResult(tuple(fresh), tuple(packs), right, len(wrong), 0, 0, len(found) - len(fresh))

    async def propose(self, request: ProposalRequest) -> Proposal:
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


def outcome_of(world: World) -> str:
    """Everything that a training decided, times aside, as one text to compare."""
    best = world.manifest.best.hard
    versions = [(each.version, each.parent, each.texts, each.trigger_run) for each in world.versions["skills"]]
    return json.dumps(
        {
            "versions": versions,
            "current": dataclasses.asdict(world.manifest.current),
            "best": None if best is None else dataclasses.asdict(best),
            "steps": [dataclasses.asdict(world.steps[key]) for key in sorted(world.steps)],
            "epochs": [dataclasses.asdict(world.epochs[key]) for key in sorted(world.epochs)],
            "estimates": sorted(dataclasses.astuple(each) for each in world.estimates.values()),
            "holdouts": sorted(str(each) for each in world.holdouts.values()),
            "predictions": sorted(f"{run} {q} {each.correct}" for (run, q), each in world.predictions.items()),
        },
        sort_keys=True,
    )
