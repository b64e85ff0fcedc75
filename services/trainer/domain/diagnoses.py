"""Why answers were wrong: what the evolver is asked and says, and the rows of an offline diagnosis."""

from __future__ import annotations

from dataclasses import dataclass


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
class DiagnoseProgress:
    """How far a diagnosis is, in questions."""

    done_count: int
    total_count: int


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
class EvidenceScore:
    """Judged quality of the evidence of one answer, in [0, 1]; None when the judge failed."""

    question_id: str
    score: float | None
    why: str
