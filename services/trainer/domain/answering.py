"""What the trainer asks the agent and what it learns from it, and how it tells an endpoint that is down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.trainer.domain.errors import EndpointDown

LOST_AT_START = 10
"""Answers that must all have failed, with none before them that did not, before a running job is given up."""


@dataclass(frozen=True, slots=True)
class AnswerJob:
    """Questions to answer under one version pair, run and salt; `salt` None draws without one."""

    workspace: str
    dataset: str
    question_ids: tuple[str, ...]
    skills_version: str
    prompts_version: str
    run_id: str
    salt: str | None
    solver: str
    skill_mode: str
    max_steps: int
    concurrency: int
    resume: bool
    overrides: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one question."""

    question_id: str
    unit_id: str
    task_type: str
    prediction: str
    correct: bool
    stop_reason: str
    steps_used: int
    model_calls: int
    cache_hits: int
    prompt_tokens: int
    completion_tokens: int
    resumed: bool
    error_detail: str


def require_living_endpoint(answers: Sequence[Answer], total: int) -> None:
    """Raises EndpointDown when every answer so far failed and there were enough of them to say so (TRN-13b)."""
    enough = len(answers) >= min(LOST_AT_START, total)
    if enough and all(answer.stop_reason == "error" for answer in answers):
        detail = answers[-1].error_detail or "no reason given"
        raise EndpointDown(
            f"all of the first {len(answers)} questions failed, so nothing is scored; the last failure: {detail}; "
            "see `videotree doctor`"
        )
