"""What a run will cost, estimated before it starts (TRN-12, `videotree plan`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CostPerQuestion:
    """Mean model calls and tokens of one answered question; measured on the baseline where there is one."""

    calls: float
    tokens: float


@dataclass(frozen=True, slots=True)
class PlannedWork:
    """One kind of work of a run, and how many questions it answers at most."""

    name: str
    questions: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class CostPlan:
    """The work of a run, with the calls and tokens it takes at most (cache hits and early verdicts make it less)."""

    work: tuple[PlannedWork, ...]
    calls: int
    tokens: int


def plan_cost(
    *,
    epochs: int,
    diag_questions: int,
    val_questions: int,
    test_questions: int,
    ladder_questions: Mapping[str, int],
    steps_per_epoch: int,
    gate_cooldown: int,
    slow_update: bool,
    holdout_test: bool,
    cost: CostPerQuestion,
    prompt_turns_per_epoch: int = 0,
    prompt_ladder_questions: int = 0,
    probation_questions: int = 0,
) -> CostPlan:
    """An upper estimate. `ladder_questions` is the length of each trainable type's ladder, in questions.

    `prompt_turns_per_epoch` counts the steps of an epoch in which a prompt is tried, `prompt_ladder_questions` is the
    length of its ladder. `probation_questions` are those that predecessors answer at an epoch's end at most.

    A gate's base arm is drawn once per skill text and then a snapshot, so each type's base is counted once per
    epoch; candidates are counted for each step in which the type isn't cooling down.
    """
    ladders = sum(ladder_questions.values())
    gates_per_epoch = -(-steps_per_epoch // (1 + gate_cooldown))
    work = [
        PlannedWork("val, initial", val_questions),
        PlannedWork("rollouts", epochs * diag_questions),
        PlannedWork("gate candidates", epochs * gates_per_epoch * ladders, f"{gates_per_epoch} per type and epoch"),
        PlannedWork("gate base", epochs * ladders, "one snapshot per accepted text"),
        PlannedWork("val, final", epochs * val_questions),
    ]
    if prompt_turns_per_epoch:
        turns = f"{prompt_turns_per_epoch} per epoch"
        work.append(
            PlannedWork("prompt gate candidates", epochs * prompt_turns_per_epoch * prompt_ladder_questions, turns)
        )
        work.append(PlannedWork("prompt gate base", epochs * prompt_ladder_questions, "one snapshot per accepted text"))
    if probation_questions:
        note = "predecessors of provisional accepts that no evaluation decided"
        work.append(PlannedWork("probation", epochs * probation_questions, note))
    if slow_update and epochs > 1:
        work.append(PlannedWork("val, slow update", (epochs - 1) * val_questions))
    if holdout_test:
        work.append(PlannedWork("held-out test", epochs * test_questions, "no version pair is measured twice"))
    total = sum(each.questions for each in work)
    return CostPlan(tuple(work), round(total * cost.calls), round(total * cost.tokens))
