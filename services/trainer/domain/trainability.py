"""Which task types have enough units to be trained and judged (TRN-6). Pure; never looks at test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DroppedType:
    """A task type left out of diag, val and the gate, and the figure that decided it."""

    task_type: str
    n_val: int
    n_units: int
    reason: str


@dataclass(frozen=True, slots=True)
class Trainability:
    """Task types in alphabetical order: those that are trained, and those that are not, with the reason."""

    trainable: tuple[str, ...]
    dropped: tuple[DroppedType, ...]


def check_trainability(
    diag_types: Sequence[str],
    val_types: Sequence[str],
    eval_min_per_class: int,
    trainable_min_units: int,
    known_types: Collection[str] = (),
) -> Trainability:
    """Judges every type that occurs. `diag_types` and `val_types` name the task type of each unit of the pool.

    `known_types` are those of the whole set, so that a type of which diag and val hold nothing is named too.

    A type needs `eval_min_per_class` units in val, to be evaluated at all, and `trainable_min_units` in diag
    and val together, from which its ladders are made.
    """
    diag, val = Counter(diag_types), Counter(val_types)
    trainable: list[str] = []
    dropped: list[DroppedType] = []
    for task_type in sorted({*diag, *val, *known_types}):
        n_val, n_units = val[task_type], diag[task_type] + val[task_type]
        if n_val < eval_min_per_class:
            reason = f"{n_val} units in val, eval_min_per_class is {eval_min_per_class}"
        elif n_units < trainable_min_units:
            reason = f"{n_units} units in diag and val, trainable_min_units is {trainable_min_units}"
        else:
            trainable.append(task_type)
            continue
        dropped.append(DroppedType(task_type, n_val, n_units, reason))
    return Trainability(tuple(trainable), tuple(dropped))


def units_by_type(unit_types: Mapping[str, str]) -> dict[str, list[str]]:
    """Unit ids by task type, both sorted."""
    grouped: dict[str, list[str]] = {}
    for unit_id in sorted(unit_types):
        grouped.setdefault(unit_types[unit_id], []).append(unit_id)
    return dict(sorted(grouped.items()))
