"""The store behind the trainer's ports, in the memory of a `World`; commits are keyed and atomic."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from difflib import unified_diff
from typing import Any

from services.questions import Question
from services.trainer.domain.checkpoint import Checkpoint, Fingerprints
from services.trainer.domain.decisions import Committed, EpochDecision, StepDecision
from services.trainer.domain.diagnoses import Diagnosis
from services.trainer.domain.errors import ServiceFailed
from services.trainer.domain.evaluations import DualMetric, HoldoutEval, HoldoutTable, UnitEstimate
from services.trainer.domain.pools import Pools
from services.trainer.domain.runs import CallSummary, Prediction, Run
from services.trainer.domain.step_rows import EvolutionRecordRow, GateEvidenceRow, QuadrantPairRow, StepReportRow
from services.trainer.domain.versions import VersionChange
from services.trainer.domain.workspaces import Best, Manifest, Seed
from tests.fakes.trainer_world import World, version


class FakeStore:
    """Library, workspaces, versions, runs and ledger; commits are keyed and atomic."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def questions(self, dataset: str) -> list[Question]:
        return self.world.questions

    async def seeds(self) -> list[Seed]:
        return [Seed("seed", "set", "baseline", 60, "p", "s", "t")]

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

    async def diff(self, workspace: str, kind: str, old: str, new: str) -> str:
        before, after = self.world.texts(kind, old), self.world.texts(kind, new)
        files = [(before.get(name, ""), after[name]) for name in sorted(after)]
        return "".join(line for a, b in files for line in unified_diff(a.splitlines(True), b.splitlines(True)))

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

    async def holding(self, workspace: str, run_id: str, work: Callable[[], Awaitable[Any]]) -> Any:
        return await work()

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
        kept = self.world.manifest.best
        best = Best(decision.best.hard or kept.hard, decision.best.mixed or kept.mixed)
        self.world.manifest = dataclasses.replace(self.world.manifest, best=best)
        return self._commit(decision.changes, decision.checkpoint)

    def _commit(self, changes: Sequence[VersionChange], checkpoint: Checkpoint) -> Committed:
        made = []
        for change in changes:
            kind = change.kind
            current = getattr(self.world.manifest.current, kind)
            texts = {**self.world.texts(kind, current), **change.overrides}
            name = f"v{len(self.world.versions[kind]) + 1}"
            new = version(kind, name, current, texts, change.trigger_run)
            made.append(dataclasses.replace(new, source=change.source, description=change.description))
            self.world.versions[kind].append(made[-1])
            now = dataclasses.replace(self.world.manifest.current, **{kind: name})
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
        ends = {(each.epoch, each.step): each for each in self.world.epochs.values() if each.evolution_records}
        made = sorted([*self.world.steps.items(), *ends.items()])
        return [EvolutionRecordRow(*key, row) for key, decision in made for row in decision.evolution_records]

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
