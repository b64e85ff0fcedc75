"""What can be evolved, and what the optimizer is shown for each (EVO-6, EVO-12)."""

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from services.evolver.domain.case_pack import CasePack, PackedCase
from services.evolver.domain.diagnosis import Cause
from services.evolver.domain.edits import Edit
from services.evolver.domain.guard import PROMPT_GUARD, SKILL_GUARD, Guard
from services.evolver.domain.proposal import RejectedProposal
from services.evolver.domain.trace import shortened
from services.skills import section_spans

NONE = "(none)"
_SHOWN_EDIT_CHARS = 600
_REWRITE = "evolve.rewrite"


class TargetKind(Enum):
    """What is edited; the value names the template."""

    SKILL = "evolve.skill"
    SYSTEM = "evolve.system"
    TOOL = "evolve.tool"


class UpdateMode(Enum):
    """By small edits, or by a whole new body."""

    PATCH = "patch"
    REWRITE = "rewrite"


def guard_of(kind: TargetKind) -> Guard:
    """Return what is protected in a file of this kind."""
    return SKILL_GUARD if kind is TargetKind.SKILL else PROMPT_GUARD


def template_of(kind: TargetKind, mode: UpdateMode) -> str:
    """Return the name of the template that asks for the proposal."""
    return _REWRITE if mode is UpdateMode.REWRITE else kind.value


def template_values(
    kind: TargetKind,
    mode: UpdateMode,
    pack: CasePack,
    current_text: str,
    budget: int,
    rejected: Sequence[RejectedProposal],
    max_chars: int,
) -> dict[str, str]:
    """Return what fills the template of `kind` and `mode`."""
    values = {
        "target_file": pack.target_file,
        "statistics": statistics_text(pack.statistics),
        "failures": "\n\n".join(map(case_text, pack.failures)) or NONE,
        "successes": "\n\n".join(map(case_text, pack.successes)) or NONE,
        "rejected": "\n\n".join(map(_rejected_text, rejected)) or NONE,
        "max_chars": str(max_chars),
    }
    if mode is UpdateMode.PATCH:
        values["budget"] = str(budget)
    if kind is TargetKind.SKILL:
        lessons = _recorded_lessons(pack)
        return {**values, "task_type": pack.task_type, "skill": current_text, "recorded_lessons": lessons}
    return {
        **values,
        "prompt": current_text,
        "frozen": "\n".join(title for title, _ in section_spans(current_text, PROMPT_GUARD.frozen_headings)) or NONE,
        "placeholders": "\n".join(PROMPT_GUARD.gaps(current_text)) or NONE,
    }


def statistics_text(statistics: Mapping[str, Any]) -> str:
    """Return figures as lines `name: value`."""
    return "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in statistics.items()) or NONE


def case_text(case: PackedCase) -> str:
    """Return a case with its id and, for a failure, its diagnosis."""
    diagnosis = ""
    if case.diagnosis:
        explanation = case.diagnosis.explanation
        diagnosis = (
            f'<diagnosis category="{explanation.category.value}" cause="{explanation.cause.value}" '
            f'tier="{case.diagnosis.tier.value}">{explanation.why}</diagnosis>\n'
        )
    return f'<case id="{case.question_id}">\n{diagnosis}{case.text}\n</case>'


def edit_text(edit: Edit) -> str:
    """Return an edit for a model to read, long texts shortened."""
    lines = [f"op: {edit.op.value}"]
    if edit.target:
        lines.append(f"target: {shortened(edit.target, _SHOWN_EDIT_CHARS)}")
    if edit.content:
        lines.append(f"content: {shortened(edit.content, _SHOWN_EDIT_CHARS)}")
    return "\n".join([*lines, f"rationale: {shortened(edit.rationale, _SHOWN_EDIT_CHARS)}"])


def _rejected_text(rejected: RejectedProposal) -> str:
    edits = "\n".join(f"<edit>\n{edit_text(edit)}\n</edit>" for edit in rejected.edits)
    return f"<refused>\n<reason>{rejected.reason}</reason>\n{edits}\n</refused>"


def _recorded_lessons(pack: CasePack) -> str:
    reminders = [
        case.diagnosis.explanation.reminder
        for case in pack.failures
        if case.diagnosis and case.diagnosis.explanation.cause is Cause.LAPSE
    ]
    return "\n".join(f"- {reminder}" for reminder in dict.fromkeys(filter(None, reminders))) or NONE
