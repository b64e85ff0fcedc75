"""The values of a diagnosis (EVO-3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Cause(Enum):
    """Whether the skill must change (DEFECT) or was right and not followed (LAPSE)."""

    DEFECT = "defect"
    LAPSE = "lapse"


class Tier(Enum):
    """T2: a defect the skill can mend. T1: a lapse. UNCERTAIN: the judgement was degraded."""

    T2 = "T2"
    T1 = "T1"
    UNCERTAIN = "uncertain"


class Category(Enum):
    """What explains a wrong answer, in the order of the waterfall."""

    FORMAT = "format"
    BUDGET = "budget"
    MISSED_NODES = "missed_nodes"
    TOOL_INCOMPLETE = "tool_incomplete"
    TOOL_HALLUCINATED = "tool_hallucinated"
    SKILL_NOT_FOLLOWED = "skill_not_followed"
    SKILL_MISLEADING = "skill_misleading"
    SKILL_SILENT = "skill_silent"
    REASONING = "reasoning"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What explains a wrong answer."""

    category: Category
    cause: Cause
    why: str
    reminder: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one stage found: its explanation, or None when it explains nothing and the next stage is asked.

    `details` is what it rests on; `spans` are its verdicts on single steps of the trace, by step.
    """

    stage: str
    explanation: Explanation | None
    details: Mapping[str, Any]
    spans: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why one prediction was wrong. `findings` are the stages that were asked, in order."""

    question_id: str
    unit_id: str
    task_type: str
    fingerprint: str
    explanation: Explanation
    degraded: bool
    findings: tuple[Finding, ...]
    metrics: Mapping[str, Any]

    @property
    def tier(self) -> Tier:
        """The tier that follows from cause and degradation."""
        if self.degraded:
            return Tier.UNCERTAIN
        return Tier.T2 if self.explanation.cause is Cause.DEFECT else Tier.T1

    @property
    def evidence(self) -> dict[str, Any]:
        """What the diagnosis rests on, by stage."""
        return {finding.stage: dict(finding.details) for finding in self.findings}


def degraded_explanation(reason: str) -> Explanation:
    """Return what a case counts as when the judge failed or gave no cause: a lapse, never a defect (EVO-4)."""
    return Explanation(Category.UNDETERMINED, Cause.LAPSE, reason)


def too_many_degraded(degraded: int, cases: int) -> bool:
    """Tell whether more than half of the cases are degraded."""
    return degraded * 2 > cases
