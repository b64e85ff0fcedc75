"""What a training remembers between steps besides the ledger's rows; it travels in the checkpoint (TRN-11). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from services.skills import block_content, replace_block
from services.trainer.domain.evolution import Edit, RejectedEdit

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Probation:
    """A provisional accept under review (GAT-13): the file, its text and its predecessor's, and the pairs so far.

    `pairs` holds (unit id, predecessor right, file right) in the order in which they were declared: epoch by epoch, in
    the pool's order within one, so that a unit can occur once an epoch. `fingerprint` and `edits` are those of the
    proposal that was accepted: rolled back, it counts among the refused ones.
    """

    task_type: str
    target_file: str
    predecessor_text: str
    current_text: str
    pairs: tuple[tuple[str, bool, bool], ...] = ()
    fingerprint: str = ""
    edits: tuple[Edit, ...] = ()


def followed(probation: Probation, text: str) -> Probation | None:
    """The probation with the MOMENTUM block of `text`, the file in force, in both its texts.

    None when the file is otherwise not the accepted one any more.
    """
    moved = replace(
        probation,
        predecessor_text=_with_momentum_of(text, probation.predecessor_text),
        current_text=_with_momentum_of(text, probation.current_text),
    )
    return moved if moved.current_text == text else None


def _with_momentum_of(source: str, text: str) -> str:
    momentum = block_content(source, "MOMENTUM")
    if momentum == block_content(text, "MOMENTUM"):
        return text
    return replace_block(text, "MOMENTUM", momentum or "")


@dataclass(frozen=True, slots=True)
class TrainerState:
    """Cooldowns (type to first global step), refused proposals (newest first) and provisional accepts, by type.

    A prompt stands among the types under the name of its gate. `prompts_fingerprint` is that of the prompts that the
    run itself has put in force, empty while they are those it began with.
    """

    cooldowns: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, tuple[RejectedEdit, ...]] = field(default_factory=dict)
    probation: Mapping[str, Probation] = field(default_factory=dict)
    prompts_fingerprint: str = ""


def with_rejected(state: TrainerState, task_type: str, refused: RejectedEdit, keep: int) -> TrainerState:
    """The state with one more refused proposal of a type, newest first, at most `keep` of them."""
    kept = (refused, *state.rejected.get(task_type, ()))[:keep]
    return replace(state, rejected=dict(sorted({**state.rejected, task_type: kept}.items())))


def with_probation(state: TrainerState, probation: Probation) -> TrainerState:
    """The state with a type put on probation; an older probation of the type ends."""
    return replace(state, probation=dict(sorted({**state.probation, probation.task_type: probation}.items())))


def without_probation(state: TrainerState, task_type: str) -> TrainerState:
    """The state without the type's probation."""
    return replace(state, probation={key: value for key, value in state.probation.items() if key != task_type})


def state_to_json(state: TrainerState) -> str:
    """The state as a JSON object with sorted keys: equal states give equal texts."""
    return json.dumps(asdict(state), sort_keys=True, separators=(",", ":"))


def state_from_json(text: str) -> TrainerState:
    """The state of a checkpoint; the empty text is the state at the start."""
    if not text:
        return TrainerState()
    raw = json.loads(text)
    rejected = {
        task_type: tuple(RejectedEdit(each["fingerprint"], _edits(each), each["reason"]) for each in proposals)
        for task_type, proposals in raw["rejected"].items()
    }
    probation = {task_type: _probation(each) for task_type, each in raw["probation"].items()}
    return TrainerState(raw["cooldowns"], rejected, probation, raw.get("prompts_fingerprint", ""))


def _probation(raw: Mapping[str, Any]) -> Probation:
    pairs = tuple((unit, old, new) for unit, old, new in raw["pairs"])
    return Probation(**{**raw, "pairs": pairs, "edits": _edits(raw)})


def _edits(raw: Mapping[str, Any]) -> tuple[Edit, ...]:
    return tuple(Edit(**{**edit, "cases": tuple(edit["cases"])}) for edit in raw.get("edits", ()))
