"""How the outcomes of a step become versions and reports (TRN-7, phase D). Pure.

All candidates of a step were made from the version at its start. Accepts land one after the other in
alphabetical order of task type, each keeping the files that earlier ones changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """An edited file that goes to the gate: whose it is, which file it replaces, and with what text.

    `kind` is that of the version it becomes part of: skills, or prompts, whose `task_type` is the gate's name.
    """

    task_type: str
    target_file: str
    text: str
    kind: str = "skills"


@dataclass(frozen=True, slots=True)
class TargetClash:
    """A candidate kept from the gate because another type of the step edits the same file."""

    candidate: Candidate
    taken_by: str


@dataclass(frozen=True, slots=True)
class AcceptedVersion:
    """A version to publish: the files changed against its predecessor, which is the accept of its kind before it."""

    task_type: str
    overrides: Mapping[str, str]
    kind: str = "skills"


def disjoint_targets(candidates: Iterable[Candidate]) -> tuple[list[Candidate], list[TargetClash]]:
    """Keeps one candidate per file: the alphabetically first type has it, later ones are told whose it is (GAT-10)."""
    kept: list[Candidate] = []
    clashes: list[TargetClash] = []
    owners: dict[str, str] = {}
    for candidate in sorted(candidates, key=lambda each: each.task_type):
        owner = owners.setdefault(candidate.target_file, candidate.task_type)
        if owner == candidate.task_type:
            kept.append(candidate)
        else:
            clashes.append(TargetClash(candidate, owner))
    return kept, clashes


def settle(candidates: Sequence[Candidate], accepted: Mapping[str, bool]) -> list[AcceptedVersion]:
    """The versions to publish, in alphabetical order of task type, each with the one file its candidate changed.

    `accepted` has an entry for every candidate's type; a missing one raises KeyError, since a type without an
    outcome must never be settled silently.
    """
    return [
        AcceptedVersion(each.task_type, {each.target_file: each.text}, each.kind)
        for each in sorted(candidates, key=lambda each: each.task_type)
        if accepted[each.task_type]
    ]
