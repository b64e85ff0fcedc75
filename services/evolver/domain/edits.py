"""An edit, and what became of it."""

from dataclasses import dataclass
from enum import Enum


class EditOp(Enum):
    """What an edit does with its target."""

    REPLACE = "replace"
    INSERT_AFTER = "insert_after"
    DELETE = "delete"
    APPEND = "append"


class EditStatus(Enum):
    """What became of an edit."""

    APPLIED = "applied"
    REFUSED = "refused"
    CLIPPED = "clipped"


class CandidateStatus(Enum):
    """What became of a list of edits as a whole.

    CANDIDATE: the text changed and is valid. SKIPPED: no edit applied. REJECTED: the changed text broke a rule.
    """

    CANDIDATE = "candidate"
    SKIPPED = "skipped"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a text, the reason for it, and the ids of the cases it answers."""

    op: EditOp
    target: str
    content: str
    rationale: str = ""
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EditOutcome:
    """An edit with its status and, unless it was applied, the reason in words."""

    edit: Edit
    status: EditStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a candidate text breaks; `rule` is a stable name, `detail` says where."""

    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """The result of applying edits.

    `text` is the new text (LF line ends) of a CANDIDATE; otherwise exactly the text that came in. `attempted` is what
    the edits made of it, also where that was refused. `outcomes` has one entry per edit, in the order given.
    """

    text: str
    attempted: str
    status: CandidateStatus
    outcomes: tuple[EditOutcome, ...]
    violations: tuple[Violation, ...] = ()
