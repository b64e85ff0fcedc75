"""What the trainer hands to the store and gets from it. Plain values, named as the store names them.

JSON texts stay texts here; enums are lower-case names such as `diag` or `both_right`; None is "not recorded".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from services.questions import Unit


@dataclass(frozen=True, slots=True)
class CurrentVersions:
    """What a workspace uses now."""

    videos: str = ""
    questions: str = ""
    skills: str = ""
    prompts: str = ""


@dataclass(frozen=True, slots=True)
class BestEntry:
    """The best version pair by one measure; `epoch` is -1 for the initial evaluation."""

    skills: str
    prompts: str
    score: float
    epoch: int
    run_id: str


@dataclass(frozen=True, slots=True)
class Best:
    """The best pairs by the share of units right and by the mixed score."""

    hard: BestEntry | None = None
    mixed: BestEntry | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a workspace."""

    name: str
    current: CurrentVersions
    best: Best
    pools_sha256: str
    baseline_run_id: str
    seed: str
    etag: str
    created_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class PoolUnit:
    """A unit's place in a split; `pool` is diag, val or test."""

    unit_id: str
    task_type: str
    video_id: str
    question_ids: tuple[str, ...]
    pool: str

    @property
    def unit(self) -> Unit:
        """The unit without its pool."""
        return Unit(self.unit_id, self.task_type, self.question_ids)


@dataclass(frozen=True, slots=True)
class Pools:
    """A frozen split."""

    baseline_run_id: str
    dataset: str
    units: tuple[PoolUnit, ...]
    sha256: str = ""

    def of(self, pool: str) -> tuple[PoolUnit, ...]:
        """The units of one pool, in their stable order."""
        return tuple(unit for unit in self.units if unit.pool == pool)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an agent answered, without its turns and reasoning."""

    run_id: str
    question_id: str
    video_id: str
    task_type: str
    prediction: str
    answer: str
    correct: bool
    stop_reason: str
    steps_used: int
    prompt_tokens: int
    completion_tokens: int
    model_calls: int
    cache_hits: int
    error_detail: str
    unit_id: str

    @property
    def tokens(self) -> int:
        """Tokens in and out of all its model calls."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Run:
    """A run: a training, a baseline or one evaluation; `status` is running, finished, failed or stopped."""

    run_id: str
    run_kind: str
    git_sha: str = ""
    config_json: str = "{}"
    skills_version: str = ""
    prompts_version: str = ""
    started_time: datetime | None = None
    finished_time: datetime | None = None
    status: str = ""
    status_detail: str = ""


@dataclass(frozen=True, slots=True)
class VersionFile:
    """One file of a version; the text is empty in listings."""

    name: str
    text: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Version:
    """A published version; `kind` is skills or prompts."""

    kind: str
    version: str
    parent: str
    source: str
    trigger_run: str
    description: str
    files: tuple[VersionFile, ...] = ()
    sha256: str = ""
    created_time: datetime | None = None

    @property
    def texts(self) -> dict[str, str]:
        """File name to text."""
        return {each.name: each.text for each in self.files}


@dataclass(frozen=True, slots=True)
class VersionChange:
    """What to publish; an empty parent means the version published just before, or the current one."""

    kind: str
    overrides: Mapping[str, str]
    source: str
    trigger_run: str
    description: str
    parent: str = ""
    removed: tuple[str, ...] = ()


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
class Fingerprints:
    """What a resumed run must share with its checkpoint."""

    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a training stands: the next piece of work, and the trainer's state as a JSON object."""

    run_id: str
    epoch: int
    step: int
    global_step: int
    trainer_state_json: str
    fingerprints: Fingerprints
    schema_version: int = 1


@dataclass(frozen=True, slots=True)
class DualMetric:
    """One evaluation of a version pair on a pool; epoch -1 is the initial one."""

    run_id: str
    epoch: int
    version_kind: str
    pool: str
    hard: float | None
    soft: float | None
    mixed: float | None
    skills_version: str
    prompts_version: str
    unit_count: int
    infra_count: int
    by_type_json: str
    measured_run_id: str


@dataclass(frozen=True, slots=True)
class HoldoutEval:
    """One evaluation on the held-out pool; `how` is intended, measured, derived or pointer."""

    run_id: str
    skills_version: str
    prompts_version: str
    accuracy: float | None
    right_count: int
    unit_count: int
    infra_count: int
    how: str
    measured_run_id: str
    epoch: int
    by_type_json: str = "{}"


@dataclass(frozen=True, slots=True)
class HoldoutRow:
    """One line of the held-out table of an epoch."""

    epoch: int
    line: str
    skills_version: str
    prompts_version: str
    accuracy: float | None
    how: str


@dataclass(frozen=True, slots=True)
class UnitEstimate:
    """Running estimate of a unit's correctness."""

    unit_id: str
    estimate: float
    observation_count: int
    last_epoch: int


@dataclass(frozen=True, slots=True)
class UnitObservation:
    """A unit's result observed in an epoch."""

    unit_id: str
    correct: bool


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why one prediction was wrong."""

    run_id: str
    question_id: str
    fingerprint: str
    tier: str
    category: str
    cause: str
    degraded: bool
    why: str
    evidence_json: str = "{}"


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
class CallSummary:
    """Sums over model calls of one role, outcome and cache status."""

    role: str
    outcome: str
    cache_status: str
    call_count: int
    prompt_tokens: int
    completion_tokens: int
    unknown_usage_count: int


@dataclass(frozen=True, slots=True)
class Dataset:
    """A question set of the library."""

    dataset: str
    question_count: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Seed:
    """A frozen starting point from which workspaces are made."""

    name: str
    dataset: str
    baseline_run_id: str
    prediction_count: int
    pools_sha256: str
    skills_sha256: str
    prompts_sha256: str
    created_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class BackupCopy:
    """A consistent copy of a workspace."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit published, and the manifest after it; `already_committed` if it had been done before."""

    versions: tuple[Version, ...]
    manifest: Manifest
    already_committed: bool


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


@dataclass(frozen=True, slots=True)
class HoldoutTable:
    """All held-out evaluations of a run, and the lines of each epoch."""

    holdout_evals: tuple[HoldoutEval, ...]
    holdout_lines: tuple[HoldoutRow, ...]
