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


def require_sound_answers(answers: Sequence[Answer], error_share_limit: float) -> None:
    """Raises EndpointDown when so many answers failed that a score over the others would be that of another pool.

    Counts infrastructure faults only: answers that could not be parsed are the model's own. Fewer than
    `LOST_AT_START` answers are too few to judge by.
    """
    failed = [answer for answer in answers if answer.stop_reason == "error"]
    if len(answers) >= LOST_AT_START and len(failed) / len(answers) > error_share_limit:
        detail = failed[-1].error_detail or "no reason given"
        raise EndpointDown(
            f"{len(failed)} of {len(answers)} questions failed, more than the share of {error_share_limit:g} that "
            f"gate_guard_err allows, so nothing is scored; the last failure: {detail}; see `videotree doctor`"
        )
