"""The tables of a workspace as SQLAlchemy models; column names are the field names of the messages they hold.

Times are ISO 8601 UTC text with microseconds: readable by a person and sorted like times, on every database.
"""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Float, Index, Integer, Text, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

# Compared byte by byte everywhere, so that lists have one order on every database.
_TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


class Base(DeclarativeBase):
    """Base of all tables; `metadata` is what the newest migration must arrive at."""

    type_annotation_map = {str: _TEXT, int: Integer, float: Float, dict[str, object]: JSON, list[str]: JSON}  # noqa: RUF012 - read by SQLAlchemy as a plain attribute


def _key() -> Mapped[str]:
    return mapped_column(primary_key=True)


def _number_key() -> Mapped[int]:
    return mapped_column(primary_key=True, autoincrement=False)


def _tokens() -> Mapped[int]:
    return mapped_column(BigInteger)


class ManifestRow(Base):
    """The manifest, which is the truth about a workspace; `manifest.json` is its projection."""

    __tablename__ = "manifest"
    name: Mapped[str] = _key()
    document: Mapped[dict[str, object]]


class VersionRow(Base):
    """A published version; a folder without a row was never published."""

    __tablename__ = "versions"
    kind: Mapped[str] = _key()
    number: Mapped[int] = _number_key()
    version: Mapped[str]
    parent: Mapped[str]
    source: Mapped[str]
    trigger_run: Mapped[str]
    description: Mapped[str]
    created_time: Mapped[str]
    file_sha256: Mapped[dict[str, object]]
    sha256: Mapped[str]


class RunRow(Base):
    """A registered run."""

    __tablename__ = "runs"
    run_id: Mapped[str] = _key()
    run_kind: Mapped[str]
    git_sha: Mapped[str]
    config_json: Mapped[str]
    skills_version: Mapped[str]
    prompts_version: Mapped[str]
    started_time: Mapped[str]
    finished_time: Mapped[str | None]
    status: Mapped[str]
    status_detail: Mapped[str]
    __table_args__ = (Index("runs_by_start", "started_time", "run_id"),)


class PredictionRow(Base):
    """What an agent answered to one question in one run."""

    __tablename__ = "predictions"
    run_id: Mapped[str] = _key()
    question_id: Mapped[str] = _key()
    video_id: Mapped[str]
    task_type: Mapped[str]
    prediction: Mapped[str]
    answer: Mapped[str]
    correct: Mapped[bool]
    evidence: Mapped[list[str]]
    reasoning: Mapped[str]
    steps_used: Mapped[int]
    prompt_tokens: Mapped[int] = _tokens()
    completion_tokens: Mapped[int] = _tokens()
    stop_reason: Mapped[str]
    steps_json: Mapped[str]
    model_calls: Mapped[int]
    cache_hits: Mapped[int]
    error_detail: Mapped[str]
    unit_id: Mapped[str]


class TraceRow(Base):
    """One tool call of an agent."""

    __tablename__ = "traces"
    run_id: Mapped[str] = _key()
    question_id: Mapped[str] = _key()
    step: Mapped[int] = _number_key()
    tool: Mapped[str]
    args_json: Mapped[str]
    output: Mapped[str]
    thought: Mapped[str]


class GateEvidenceRow(Base):
    """One consumed unit of a gate."""

    __tablename__ = "gate_evidence"
    run_id: Mapped[str] = _key()
    epoch: Mapped[int] = _number_key()
    step: Mapped[int] = _number_key()
    task_type: Mapped[str] = _key()
    ladder_rank: Mapped[int] = _number_key()
    unit_id: Mapped[str]
    base_correct: Mapped[bool]
    cand_correct: Mapped[bool]
    e_value: Mapped[float]
    w: Mapped[int]
    l: Mapped[int]  # noqa: E741 - the field's standard name for losses


class QuadrantPairRow(Base):
    """A unit's outcome in both arms of one step."""

    __tablename__ = "quadrant_pairs"
    run_id: Mapped[str] = _key()
    epoch: Mapped[int] = _number_key()
    step: Mapped[int] = _number_key()
    task_type: Mapped[str] = _key()
    unit_id: Mapped[str] = _key()
    quadrant: Mapped[str]
    consumed: Mapped[bool]


class StepReportRow(Base):
    """What a step did for one task type."""

    __tablename__ = "step_reports"
    run_id: Mapped[str] = _key()
    epoch: Mapped[int] = _number_key()
    step: Mapped[int] = _number_key()
    task_type: Mapped[str] = _key()
    gate_action: Mapped[str]
    base_accuracy: Mapped[float | None]
    cand_accuracy: Mapped[float | None]
    rollout_accuracy: Mapped[float | None]
    edit_budget: Mapped[int]
    rank_clip_triggered: Mapped[bool]
    w: Mapped[int]
    l: Mapped[int]  # noqa: E741 - the field's standard name for losses
    e_value: Mapped[float | None]
    n_used: Mapped[int]
    n_planned: Mapped[int]
    excluded: Mapped[int]
    launched: Mapped[int]
    cache_hits: Mapped[int]
    stop_reason: Mapped[str]
    verdict_json: Mapped[str]
    detectable_gain: Mapped[float | None]
    peak_in_flight: Mapped[int | None]
    endpoint_error_rate: Mapped[float | None]
    wall_duration: Mapped[float | None]
    accepted_version: Mapped[str]


class EvolutionRecordRow(Base):
    """What happened to one target in one step."""

    __tablename__ = "evolution_records"
    run_id: Mapped[str] = _key()
    epoch: Mapped[int] = _number_key()
    step: Mapped[int] = _number_key()
    target: Mapped[str] = _key()
    task_type: Mapped[str]
    status: Mapped[str]
    edits_json: Mapped[str]
    ranks_json: Mapped[str]
    rejections_json: Mapped[str]
    attempts: Mapped[int]
    base_version: Mapped[str]
    accepted_version: Mapped[str]
    cases_json: Mapped[str]
    unified_diff: Mapped[str]


class QuestionMetricRow(Base):
    """Figures about how one question was worked on."""

    __tablename__ = "question_metrics"
    run_id: Mapped[str] = _key()
    question_id: Mapped[str] = _key()
    metrics_json: Mapped[str]


class SpanEvaluationRow(Base):
    """How the judge saw one span of a trace."""

    __tablename__ = "span_evaluations"
    run_id: Mapped[str] = _key()
    question_id: Mapped[str] = _key()
    step: Mapped[int] = _number_key()
    evaluation_json: Mapped[str]


class DiagnosisTraceRow(Base):
    """One stage of the diagnosis of one question."""

    __tablename__ = "diagnosis_traces"
    run_id: Mapped[str] = _key()
    question_id: Mapped[str] = _key()
    stage: Mapped[str] = _key()
    finding_json: Mapped[str]


class BaselineDiagnosisRow(Base):
    """Why a baseline prediction was wrong, by content fingerprint."""

    __tablename__ = "baseline_diagnosis"
    fingerprint: Mapped[str] = _key()
    run_id: Mapped[str]
    question_id: Mapped[str]
    tier: Mapped[str]
    category: Mapped[str]
    cause: Mapped[str]
    degraded: Mapped[bool]
    why: Mapped[str]
    evidence_json: Mapped[str]
    __table_args__ = (Index("baseline_diagnosis_by_run", "run_id", "fingerprint"),)


class BaselineCacheRow(Base):
    """A unit's result under one skill text: the fixed snapshot of the gate's base arm."""

    __tablename__ = "baseline_cache"
    task_type: Mapped[str] = _key()
    skill_sha256: Mapped[str] = _key()
    prompts_version: Mapped[str] = _key()
    unit_id: Mapped[str] = _key()
    correct: Mapped[bool]
    run_id: Mapped[str]
    created_time: Mapped[str]


class DualMetricRow(Base):
    """One evaluation of a version pair on a pool."""

    __tablename__ = "dual_metric"
    run_id: Mapped[str] = _key()
    epoch: Mapped[int] = _number_key()
    version_kind: Mapped[str] = _key()
    pool: Mapped[str] = _key()
    hard: Mapped[float | None]
    soft: Mapped[float | None]
    mixed: Mapped[float | None]
    skills_version: Mapped[str]
    prompts_version: Mapped[str]
    unit_count: Mapped[int]
    infra_count: Mapped[int]
    by_type_json: Mapped[str]
    measured_run_id: Mapped[str]


class HoldoutEvalRow(Base):
    """One evaluation on the held-out pool."""

    __tablename__ = "holdout_eval"
    run_id: Mapped[str] = _key()
    skills_version: Mapped[str] = _key()
    prompts_version: Mapped[str] = _key()
    accuracy: Mapped[float | None]
    right_count: Mapped[int]
    unit_count: Mapped[int]
    infra_count: Mapped[int]
    how: Mapped[str]
    measured_run_id: Mapped[str]
    epoch: Mapped[int]
    by_type_json: Mapped[str]


class HoldoutLineRow(Base):
    """One line of the held-out table of an epoch."""

    __tablename__ = "holdout_lines"
    run_id: Mapped[str] = _key()
    epoch: Mapped[int] = _number_key()
    line: Mapped[str] = _key()
    skills_version: Mapped[str]
    prompts_version: Mapped[str]
    accuracy: Mapped[float | None]
    how: Mapped[str]


class GatePoolRow(Base):
    """Running estimate of a unit's correctness."""

    __tablename__ = "gate_pools"
    run_id: Mapped[str] = _key()
    unit_id: Mapped[str] = _key()
    estimate: Mapped[float]
    observation_count: Mapped[int]
    last_epoch: Mapped[int]


class CheckpointRow(Base):
    """Where a training stands."""

    __tablename__ = "checkpoints"
    run_id: Mapped[str] = _key()
    schema_version: Mapped[int]
    epoch: Mapped[int]
    step: Mapped[int]
    global_step: Mapped[int]
    trainer_state_json: Mapped[str]
    fingerprints: Mapped[dict[str, object]]
    committed_time: Mapped[str]


class CommitRow(Base):
    """That a step or an epoch's end was committed, and what it was answered: a repeat gets the same answer."""

    __tablename__ = "commits"
    run_id: Mapped[str] = _key()
    scope: Mapped[str] = _key()
    epoch: Mapped[int] = _number_key()
    step: Mapped[int] = _number_key()
    versions: Mapped[list[str]]
    manifest: Mapped[dict[str, object]]
    committed_time: Mapped[str]


class LlmCallRow(Base):
    """One logical model call."""

    __tablename__ = "llm_calls"
    call_id: Mapped[str] = _key()
    role: Mapped[str]
    endpoint: Mapped[str]
    outcome: Mapped[str]
    attempts: Mapped[int]
    cache_status: Mapped[str]
    prompt_tokens: Mapped[int | None] = mapped_column(BigInteger)
    completion_tokens: Mapped[int | None] = mapped_column(BigInteger)
    first_token_duration: Mapped[float | None]
    largest_gap_duration: Mapped[float | None]
    latency_duration: Mapped[float | None]
    parent_call: Mapped[str]
    started_time: Mapped[str | None]
    run_id: Mapped[str] = mapped_column(server_default=text("''"))
    __table_args__ = (Index("llm_calls_by_run", "run_id"),)
