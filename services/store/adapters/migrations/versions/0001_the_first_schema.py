"""The first schema."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Compared byte by byte everywhere, so that lists have one order on every database.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Bring the schema into being."""
    op.create_table(
        "baseline_cache",
        sa.Column("task_type", TEXT, nullable=False),
        sa.Column("skill_sha256", TEXT, nullable=False),
        sa.Column("prompts_version", TEXT, nullable=False),
        sa.Column("unit_id", TEXT, nullable=False),
        sa.Column("correct", sa.Boolean(), nullable=False),
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("created_time", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("task_type", "skill_sha256", "prompts_version", "unit_id"),
    )
    op.create_table(
        "baseline_diagnosis",
        sa.Column("fingerprint", TEXT, nullable=False),
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("question_id", TEXT, nullable=False),
        sa.Column("tier", TEXT, nullable=False),
        sa.Column("category", TEXT, nullable=False),
        sa.Column("cause", TEXT, nullable=False),
        sa.Column("degraded", sa.Boolean(), nullable=False),
        sa.Column("why", TEXT, nullable=False),
        sa.Column("evidence_json", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("fingerprint"),
    )
    op.create_index("baseline_diagnosis_by_run", "baseline_diagnosis", ["run_id", "fingerprint"])
    op.create_table(
        "checkpoints",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("global_step", sa.Integer(), nullable=False),
        sa.Column("trainer_state_json", TEXT, nullable=False),
        sa.Column("fingerprints", sa.JSON(), nullable=False),
        sa.Column("committed_time", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_table(
        "commits",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("scope", TEXT, nullable=False),
        sa.Column("epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("manifest", sa.JSON(), nullable=False),
        sa.Column("committed_time", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "scope", "epoch", "step"),
    )
    op.create_table(
        "diagnosis_traces",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("question_id", TEXT, nullable=False),
        sa.Column("stage", TEXT, nullable=False),
        sa.Column("finding_json", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "question_id", "stage"),
    )
    op.create_table(
        "dual_metric",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version_kind", TEXT, nullable=False),
        sa.Column("pool", TEXT, nullable=False),
        sa.Column("hard", sa.Float(), nullable=True),
        sa.Column("soft", sa.Float(), nullable=True),
        sa.Column("mixed", sa.Float(), nullable=True),
        sa.Column("skills_version", TEXT, nullable=False),
        sa.Column("prompts_version", TEXT, nullable=False),
        sa.Column("unit_count", sa.Integer(), nullable=False),
        sa.Column("infra_count", sa.Integer(), nullable=False),
        sa.Column("by_type_json", TEXT, nullable=False),
        sa.Column("measured_run_id", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "epoch", "version_kind", "pool"),
    )
    op.create_table(
        "evolution_records",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("target", TEXT, nullable=False),
        sa.Column("task_type", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("edits_json", TEXT, nullable=False),
        sa.Column("ranks_json", TEXT, nullable=False),
        sa.Column("rejections_json", TEXT, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("base_version", TEXT, nullable=False),
        sa.Column("accepted_version", TEXT, nullable=False),
        sa.Column("cases_json", TEXT, nullable=False),
        sa.Column("unified_diff", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "epoch", "step", "target"),
    )
    op.create_table(
        "gate_evidence",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("task_type", TEXT, nullable=False),
        sa.Column("ladder_rank", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("unit_id", TEXT, nullable=False),
        sa.Column("base_correct", sa.Boolean(), nullable=False),
        sa.Column("cand_correct", sa.Boolean(), nullable=False),
        sa.Column("e_value", sa.Float(), nullable=False),
        sa.Column("w", sa.Integer(), nullable=False),
        sa.Column("l", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "epoch", "step", "task_type", "ladder_rank"),
    )
    op.create_table(
        "gate_pools",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("unit_id", TEXT, nullable=False),
        sa.Column("estimate", sa.Float(), nullable=False),
        sa.Column("observation_count", sa.Integer(), nullable=False),
        sa.Column("last_epoch", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "unit_id"),
    )
    op.create_table(
        "holdout_eval",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("skills_version", TEXT, nullable=False),
        sa.Column("prompts_version", TEXT, nullable=False),
        sa.Column("accuracy", sa.Float(), nullable=True),
        sa.Column("right_count", sa.Integer(), nullable=False),
        sa.Column("unit_count", sa.Integer(), nullable=False),
        sa.Column("infra_count", sa.Integer(), nullable=False),
        sa.Column("how", TEXT, nullable=False),
        sa.Column("measured_run_id", TEXT, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("by_type_json", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "skills_version", "prompts_version"),
    )
    op.create_table(
        "holdout_lines",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("line", TEXT, nullable=False),
        sa.Column("skills_version", TEXT, nullable=False),
        sa.Column("prompts_version", TEXT, nullable=False),
        sa.Column("accuracy", sa.Float(), nullable=True),
        sa.Column("how", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "epoch", "line"),
    )
    op.create_table(
        "llm_calls",
        sa.Column("call_id", TEXT, nullable=False),
        sa.Column("role", TEXT, nullable=False),
        sa.Column("endpoint", TEXT, nullable=False),
        sa.Column("outcome", TEXT, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("cache_status", TEXT, nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=True),
        sa.Column("first_token_duration", sa.Float(), nullable=True),
        sa.Column("largest_gap_duration", sa.Float(), nullable=True),
        sa.Column("latency_duration", sa.Float(), nullable=True),
        sa.Column("parent_call", TEXT, nullable=False),
        sa.Column("started_time", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("call_id"),
    )
    op.create_table(
        "manifest",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "predictions",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("question_id", TEXT, nullable=False),
        sa.Column("video_id", TEXT, nullable=False),
        sa.Column("task_type", TEXT, nullable=False),
        sa.Column("prediction", TEXT, nullable=False),
        sa.Column("answer", TEXT, nullable=False),
        sa.Column("correct", sa.Boolean(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("reasoning", TEXT, nullable=False),
        sa.Column("steps_used", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("stop_reason", TEXT, nullable=False),
        sa.Column("steps_json", TEXT, nullable=False),
        sa.Column("model_calls", sa.Integer(), nullable=False),
        sa.Column("cache_hits", sa.Integer(), nullable=False),
        sa.Column("error_detail", TEXT, nullable=False),
        sa.Column("unit_id", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "question_id"),
    )
    op.create_table(
        "quadrant_pairs",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("task_type", TEXT, nullable=False),
        sa.Column("unit_id", TEXT, nullable=False),
        sa.Column("quadrant", TEXT, nullable=False),
        sa.Column("consumed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "epoch", "step", "task_type", "unit_id"),
    )
    op.create_table(
        "question_metrics",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("question_id", TEXT, nullable=False),
        sa.Column("metrics_json", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "question_id"),
    )
    op.create_table(
        "runs",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("run_kind", TEXT, nullable=False),
        sa.Column("git_sha", TEXT, nullable=False),
        sa.Column("config_json", TEXT, nullable=False),
        sa.Column("skills_version", TEXT, nullable=False),
        sa.Column("prompts_version", TEXT, nullable=False),
        sa.Column("started_time", TEXT, nullable=False),
        sa.Column("finished_time", TEXT, nullable=True),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("status_detail", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_index("runs_by_start", "runs", ["started_time", "run_id"])
    op.create_table(
        "span_evaluations",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("question_id", TEXT, nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("evaluation_json", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "question_id", "step"),
    )
    op.create_table(
        "step_reports",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("task_type", TEXT, nullable=False),
        sa.Column("gate_action", TEXT, nullable=False),
        sa.Column("base_accuracy", sa.Float(), nullable=True),
        sa.Column("cand_accuracy", sa.Float(), nullable=True),
        sa.Column("rollout_accuracy", sa.Float(), nullable=True),
        sa.Column("edit_budget", sa.Integer(), nullable=False),
        sa.Column("rank_clip_triggered", sa.Boolean(), nullable=False),
        sa.Column("w", sa.Integer(), nullable=False),
        sa.Column("l", sa.Integer(), nullable=False),
        sa.Column("e_value", sa.Float(), nullable=True),
        sa.Column("n_used", sa.Integer(), nullable=False),
        sa.Column("n_planned", sa.Integer(), nullable=False),
        sa.Column("excluded", sa.Integer(), nullable=False),
        sa.Column("launched", sa.Integer(), nullable=False),
        sa.Column("cache_hits", sa.Integer(), nullable=False),
        sa.Column("stop_reason", TEXT, nullable=False),
        sa.Column("verdict_json", TEXT, nullable=False),
        sa.Column("detectable_gain", sa.Float(), nullable=True),
        sa.Column("peak_in_flight", sa.Integer(), nullable=True),
        sa.Column("endpoint_error_rate", sa.Float(), nullable=True),
        sa.Column("wall_duration", sa.Float(), nullable=True),
        sa.Column("accepted_version", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "epoch", "step", "task_type"),
    )
    op.create_table(
        "traces",
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("question_id", TEXT, nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("tool", TEXT, nullable=False),
        sa.Column("args_json", TEXT, nullable=False),
        sa.Column("output", TEXT, nullable=False),
        sa.Column("thought", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "question_id", "step"),
    )
    op.create_table(
        "versions",
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", TEXT, nullable=False),
        sa.Column("parent", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("trigger_run", TEXT, nullable=False),
        sa.Column("description", TEXT, nullable=False),
        sa.Column("created_time", TEXT, nullable=False),
        sa.Column("file_sha256", sa.JSON(), nullable=False),
        sa.Column("sha256", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("kind", "number"),
    )
