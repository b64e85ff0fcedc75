"""Reading the optimizer's answers into edits, and choosing among them (EVO-6, EVO-7)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.evolver.domain.edits import Edit, EditOp, EditOutcome, EditStatus
from services.evolver.domain.errors import AnswerFault


@dataclass(frozen=True, slots=True)
class ProposedEdits:
    """The optimizer's answer in patch mode."""

    suggestions: tuple[str, ...]
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class ProposedBody:
    """The optimizer's answer in rewrite mode; an empty body proposes no change."""

    suggestions: tuple[str, ...]
    body: str
    rationale: str
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RejectedProposal:
    """A proposal that the checks or the gate refused, with the gate's figures in `reason`."""

    fingerprint: str
    edits: tuple[Edit, ...]
    reason: str


def read_edits(answer: Mapping[str, Any], case_ids: Collection[str]) -> ProposedEdits:
    """Return the proposed edits; raises AnswerFault where one names a case that was not shown."""
    _check_cases([case for edit in answer["edits"] for case in edit["cases"]], case_ids)
    edits = tuple(
        Edit(EditOp(edit["op"]), edit["target"], edit["content"], edit["rationale"], tuple(edit["cases"]))
        for edit in answer["edits"]
    )
    return ProposedEdits(tuple(answer["suggestions"]), edits)


def read_body(answer: Mapping[str, Any], case_ids: Collection[str]) -> ProposedBody:
    """Return the proposed body; raises AnswerFault where it names a case that was not shown."""
    _check_cases(answer["cases"], case_ids)
    return ProposedBody(tuple(answer["suggestions"]), answer["body"], answer["rationale"], tuple(answer["cases"]))


def _check_cases(named: Sequence[str], known: Collection[str]) -> None:
    unknown = sorted(set(named) - set(known))
    if unknown:
        raise AnswerFault([f"cases: there is no case {case!r}" for case in unknown[:5]])


def read_order(answer: Mapping[str, Any], count: int) -> tuple[int, ...]:
    """Return the ranking's order; raises AnswerFault unless it holds each number from 0 to `count` - 1 once."""
    order = tuple(answer["order"])
    if sorted(order) != list(range(count)):
        raise AnswerFault([f"order: must hold each number from 0 to {count - 1} exactly once, got {list(order)[:40]}"])
    return order


def clip(edits: Sequence[Edit], order: Sequence[int], budget: int) -> tuple[tuple[Edit, ...], tuple[EditOutcome, ...]]:
    """Return (the `budget` best edits in the order given by the optimizer, outcomes of those left out).

    The kept ones stay in their own order, because a later edit may build on what an earlier one wrote.
    """
    best = set(order[:budget])
    kept = tuple(edit for index, edit in enumerate(edits) if index in best)
    left_out = tuple(
        EditOutcome(edit, EditStatus.CLIPPED, f"beyond the budget of {budget} edits")
        for index, edit in enumerate(edits)
        if index not in best
    )
    return kept, left_out
