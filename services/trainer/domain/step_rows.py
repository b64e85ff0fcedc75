"""What a step leaves in the ledger, as it is decided and as it is read again with its place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GateEvidence:
    """One consumed unit of a gate."""

    task_type: str
    ladder_rank: int
    unit_id: str
    base_correct: bool
    cand_correct: bool
    e_value: float
    w: int
    l: int  # noqa: E741 - the field's name in the store and in the papers


@dataclass(frozen=True, slots=True)
class QuadrantPair:
    """A unit's quadrant in one step; `consumed` tells what the gate counted from what it only observed."""

    task_type: str
    unit_id: str
    quadrant: str
    consumed: bool


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a step did for one task type."""

    task_type: str
    gate_action: str
    stop_reason: str
    base_accuracy: float | None = None
    cand_accuracy: float | None = None
    rollout_accuracy: float | None = None
    edit_budget: int = 0
    rank_clip_triggered: bool = False
    w: int = 0
    l: int = 0  # noqa: E741 - as above
    e_value: float | None = None
    n_used: int = 0
    n_planned: int = 0
    excluded: int = 0
    launched: int = 0
    cache_hits: int = 0
    verdict_json: str = ""
    detectable_gain: float | None = None
    peak_in_flight: int | None = None
    endpoint_error_rate: float | None = None
    wall_seconds: float | None = None
    accepted_version: str = ""


@dataclass(frozen=True, slots=True)
class EvolutionRecord:
    """What happened to one target in one step."""

    target: str
    task_type: str
    status: str
    edits_json: str = "[]"
    ranks_json: str = "[]"
    rejections_json: str = "[]"
    attempts: int = 0
    base_version: str = ""
    accepted_version: str = ""
    cases_json: str = "[]"
    unified_diff: str = ""


@dataclass(frozen=True, slots=True)
class StepReportRow:
    """A step report and where it belongs."""

    epoch: int
    step: int
    report: StepReport


@dataclass(frozen=True, slots=True)
class GateEvidenceRow:
    """A row of evidence and where it belongs."""

    epoch: int
    step: int
    evidence: GateEvidence


@dataclass(frozen=True, slots=True)
class QuadrantPairRow:
    """A quadrant and where it belongs."""

    epoch: int
    step: int
    pair: QuadrantPair


@dataclass(frozen=True, slots=True)
class EvolutionRecordRow:
    """An evolution record and where it belongs."""

    epoch: int
    step: int
    record: EvolutionRecord
