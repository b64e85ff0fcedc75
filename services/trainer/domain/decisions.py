"""Everything a finished step or epoch decided, and what its commit published."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.trainer.domain.checkpoint import Checkpoint
from services.trainer.domain.evaluations import DualMetric, HoldoutEval, HoldoutRow, UnitObservation
from services.trainer.domain.step_rows import EvolutionRecord, GateEvidence, QuadrantPair, StepReport
from services.trainer.domain.versions import Version, VersionChange
from services.trainer.domain.workspaces import Best, Manifest


@dataclass(frozen=True, slots=True)
class StepDecision:
    """Everything a finished step decided; committed in one transaction (STO-8)."""

    workspace: str
    run_id: str
    epoch: int
    step: int
    checkpoint: Checkpoint
    evidence: tuple[GateEvidence, ...] = ()
    quadrants: tuple[QuadrantPair, ...] = ()
    step_reports: tuple[StepReport, ...] = ()
    evolution_records: tuple[EvolutionRecord, ...] = ()
    changes: tuple[VersionChange, ...] = ()


@dataclass(frozen=True, slots=True)
class EpochDecision:
    """Everything an epoch's end decided; epoch -1 is the initial evaluation."""

    workspace: str
    run_id: str
    epoch: int
    checkpoint: Checkpoint
    dual_metrics: tuple[DualMetric, ...] = ()
    holdout_evals: tuple[HoldoutEval, ...] = ()
    holdout_lines: tuple[HoldoutRow, ...] = ()
    observations: tuple[UnitObservation, ...] = ()
    changes: tuple[VersionChange, ...] = ()
    best: Best = field(default_factory=Best)
    evolution_records: tuple[EvolutionRecord, ...] = ()
    step: int = 0


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit published, and the manifest after it; `already_committed` if it had been done before."""

    versions: tuple[Version, ...]
    manifest: Manifest
    already_committed: bool
