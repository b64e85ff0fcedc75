"""Runs, what they answered and which model calls that took."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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
class CallSummary:
    """Sums over model calls of one role, outcome and cache status."""

    role: str
    outcome: str
    cache_status: str
    call_count: int
    prompt_tokens: int
    completion_tokens: int
    unknown_usage_count: int
