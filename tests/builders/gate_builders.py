"""Rounds, ladders and results for tests of the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from services.gate.domain.round_spec import AgentOptions, RoundOptions, RoundSpec, TypeSpec
from services.gate.domain.unit_result import ArmResult
from services.gate.domain.verdict import GateParameters
from services.gate.use_cases.ports import ArmCall, PooledUnit
from services.questions import Unit
from services.skills import slug
from tests.fakes.gate_fakes import InMemoryStore, ScriptedInference, arm_of

RIGHT, WRONG, ERROR, UNPARSABLE = ArmResult
FINISHED = "finished"

Results = Mapping[tuple[str, str], str]
"""(unit id, arm) -> right, wrong, error or parse_error."""


def unit(task_type: str, number: int, questions: int = 1) -> Unit:
    name = f"{slug(task_type)}-{number}"
    return Unit(name, task_type, tuple(f"{name}-q{i}" for i in range(questions)))


def type_spec(task_type: str, sizes: Sequence[int], parameters: GateParameters | None = None) -> TypeSpec:
    ladder = tuple(unit(task_type, number, size) for number, size in enumerate(sizes))
    return TypeSpec(
        task_type, f"{slug(task_type)}.md", f"candidate for {task_type}", ladder, parameters or GateParameters()
    )


def round_spec(types: Sequence[TypeSpec], options: RoundOptions | None = None) -> RoundSpec:
    return RoundSpec(
        workspace="w",
        run_id="train",
        epoch=0,
        step=1,
        dataset="d",
        skills_version="v1",
        prompts_version="v1",
        types=tuple(types),
        options=options or RoundOptions(),
        agent=AgentOptions(),
    )


def store_for(types: Sequence[TypeSpec]) -> InMemoryStore:
    units = {one.unit_id: PooledUnit(spec.task_type, one.question_ids, False) for spec in types for one in spec.ladder}
    return InMemoryStore({("w", "v1"): {"default-strategy.md": "look closely"}}, units)


@dataclass
class Script:
    """Answers from a table; `right` and `wrong` apply to each question of the unit. Unlisted arms are wrong."""

    results: Results
    delays: Mapping[tuple[str, str], float] = field(default_factory=dict)

    async def __call__(self, call: ArmCall) -> list[tuple[bool, str]]:
        key = (call.question_ids[0].rsplit("-q", 1)[0], arm_of(call))
        await asyncio.sleep(self.delays.get(key, 0))
        result = self.results.get(key, "wrong")
        reply = (result == "right", FINISHED if result in ("right", "wrong") else result)
        return [reply] * len(call.question_ids)


def scripted(results: Results, delays: Mapping[tuple[str, str], float] | None = None) -> ScriptedInference:
    return ScriptedInference(Script(results, delays or {}))


def flips(task_type: str, outcomes: str) -> dict[tuple[str, str], str]:
    """W a win, L a loss, B both right, N both wrong, E an error of the candidate, P its parse error (base right)."""
    table = {
        "W": ("wrong", "right"),
        "L": ("right", "wrong"),
        "B": ("right", "right"),
        "N": ("wrong", "wrong"),
        "E": ("right", "error"),
        "P": ("right", "parse_error"),
        "F": ("error", "right"),
    }
    results: dict[tuple[str, str], str] = {}
    for number, outcome in enumerate(outcomes):
        base, cand = table[outcome]
        name = f"{slug(task_type)}-{number}"
        results[name, "base"], results[name, "cand"] = base, cand
    return results


def no_guard(options: RoundOptions | None = None) -> RoundOptions:
    options = options or RoundOptions()
    return replace(options, guard=replace(options.guard, max_fault_share=1.0))
