"""What the trainer asks the evolver and what it learns from it. Plain values, named as the evolver names them."""

from __future__ import annotations

from dataclasses import dataclass

from services.trainer.domain.diagnoses import CasePack


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit; `op` is replace, insert_after, delete or append."""

    op: str
    target: str
    content: str
    rationale: str
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EditResult:
    """An edit and what became of it: applied, refused or clipped, and why."""

    edit: Edit
    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class RejectedEdit:
    """A proposal that the checks or the gate refused."""

    fingerprint: str
    edits: tuple[Edit, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class LeakGuard:
    """A question whose wording must not appear in a skill."""

    question_text: str
    answer_text: str


@dataclass(frozen=True, slots=True)
class ProposalRequest:
    """What a proposal is asked for with."""

    workspace: str
    run_id: str
    case_pack: CasePack
    current_text: str
    edit_budget: int
    rejected: tuple[RejectedEdit, ...]
    update_mode: str
    target_kind: str
    leak_guards: tuple[LeakGuard, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What became of a proposal: `status` is candidate, skipped, rejected or repeated."""

    status: str
    candidate_text: str
    edits: tuple[EditResult, ...]
    suggestions: tuple[str, ...]
    errors: tuple[str, ...]
    rank_clip_triggered: bool
    ranks: tuple[int, ...]
    attempts: int
    fingerprint: str
    unified_diff: str


@dataclass(frozen=True, slots=True)
class AppendixRequest:
    """Reminders to add to a skill's appendix."""

    workspace: str
    run_id: str
    skill_text: str
    reminders: tuple[str, ...]
    leak_guards: tuple[LeakGuard, ...]


@dataclass(frozen=True, slots=True)
class AppendixUpdate:
    """The skill with its new appendix; the original when nothing changed."""

    text: str
    added_count: int
    consolidated: bool
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnitChange:
    """How a unit fared in two epochs."""

    unit_id: str
    task_type: str
    earlier_correct: bool
    later_correct: bool
    summary: str


@dataclass(frozen=True, slots=True)
class SkillText:
    """A skill's file name and text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class SlowUpdateRequest:
    """What the slow update rests on."""

    workspace: str
    run_id: str
    skills: tuple[SkillText, ...]
    changes: tuple[UnitChange, ...]
    history: tuple[str, ...]
    leak_guards: tuple[LeakGuard, ...]


@dataclass(frozen=True, slots=True)
class SlowUpdate:
    """Skills whose momentum block changed."""

    skills: tuple[SkillText, ...]
    errors: tuple[str, ...]
    attempts: int
