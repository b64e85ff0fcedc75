"""What the trainer asks the evolver and what it learns from it. Plain values, named as the evolver names them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CaseDiagnosis:
    """Why one prediction was wrong; `tier` is t2, t1 or uncertain, `cause` defect or lapse."""

    question_id: str
    unit_id: str
    task_type: str
    fingerprint: str
    tier: str
    category: str
    cause: str
    degraded: bool
    why: str
    evidence_json: str
    metrics_json: str
    reminder: str


@dataclass(frozen=True, slots=True)
class Case:
    """One question with its whole trace; `diagnosis` is None for a success."""

    question_id: str
    unit_id: str
    text: str
    diagnosis: CaseDiagnosis | None
    cut: bool


@dataclass(frozen=True, slots=True)
class CasePack:
    """What a proposal for one type rests on, or for a prompt: then type and target file are the prompt's."""

    task_type: str
    target_file: str
    failures: tuple[Case, ...]
    successes: tuple[Case, ...]
    statistics_json: str
    unit_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DiagnoseResult:
    """Result of a diagnosis; `pooled_pack` holds the cases of all types, None unless it was asked for."""

    diagnoses: tuple[CaseDiagnosis, ...]
    case_packs: tuple[CasePack, ...]
    right_count: int
    wrong_count: int
    infra_count: int
    degraded_count: int
    known_count: int
    pooled_pack: CasePack | None = None


@dataclass(frozen=True, slots=True)
class DiagnoseProgress:
    """How far a diagnosis is, in questions."""

    done_count: int
    total_count: int


@dataclass(frozen=True, slots=True)
class DiagnoseJob:
    """Which predictions to diagnose; `max_steps` is the agent's step limit in that run, 0 where it isn't known."""

    workspace: str
    run_id: str
    dataset: str
    question_ids: tuple[str, ...]
    skills_version: str
    prompts_version: str
    with_case_packs: bool
    tolerate_degraded: bool = False
    known_fingerprints: tuple[str, ...] = ()
    max_steps: int = 0
    with_pooled_pack: bool = False


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


@dataclass(frozen=True, slots=True)
class EvidenceScore:
    """Judged quality of the evidence of one answer, in [0, 1]; None when the judge failed."""

    question_id: str
    score: float | None
    why: str
