"""The gate's ports in memory, and what a test wants to know of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from services.gate.domain.errors import MissingInStore
from services.gate.domain.round_events import Usage
from services.gate.domain.unit_result import Arm, QuestionResult
from services.gate.use_cases.ports import (
    ArmAnswers,
    ArmCall,
    BaselineKey,
    BaselineRow,
    PooledUnit,
)


def arm_of(call: ArmCall) -> Arm:
    return Arm(call.run_id.rsplit("_", 1)[1])


class InMemoryStore:
    """The `Store` port; `cached` holds what was written, `writes` the size of each write."""

    def __init__(self, files: Mapping[tuple[str, str], Mapping[str, str]], units: Mapping[str, PooledUnit]) -> None:
        self.files = files
        self.prompts: Mapping[tuple[str, str], Mapping[str, str]] = {}
        self.units = units
        self.cached: dict[tuple[BaselineKey, str], BaselineRow] = {}
        self.writes: list[int] = []

    async def skill_files(self, workspace: str, version: str) -> Mapping[str, str]:
        if (workspace, version) not in self.files:
            raise MissingInStore(f"no skills {version} in {workspace}", status="NOT_FOUND")
        return self.files[workspace, version]

    async def prompt_files(self, workspace: str, version: str) -> Mapping[str, str]:
        if (workspace, version) not in self.prompts:
            raise MissingInStore(f"no prompts {version} in {workspace}", status="NOT_FOUND")
        return self.prompts[workspace, version]

    async def pooled_units(self, workspace: str) -> Mapping[str, PooledUnit]:
        if not any(known == workspace for known, _ in self.files):
            raise MissingInStore(f"no workspace {workspace}", status="NOT_FOUND")
        return self.units

    async def cached_results(self, key: BaselineKey, unit_ids: Collection[str]) -> Mapping[str, bool]:
        return {unit: self.cached[key, unit].correct for unit in unit_ids if (key, unit) in self.cached}

    async def cache_results(self, rows: Sequence[BaselineRow]) -> None:
        await asyncio.sleep(0)
        self.writes.append(len(rows))
        for row in rows:
            self.cached.setdefault((row.key, row.unit_id), row)


Reply = Callable[[ArmCall], Awaitable[Sequence[tuple[bool, str]]]]


class ScriptedInference:
    """The `Inference` port: `reply` gives (correct, stop reason) for each question of a call.

    `calls`: every call in the order of launch. `peak`: most questions in flight. `open`: questions in flight now.
    `ended`: calls that returned; `cancelled`: calls that were cancelled.
    """

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.calls: list[ArmCall] = []
        self.ended: list[ArmCall] = []
        self.cancelled: list[ArmCall] = []
        self.open = 0
        self.peak = 0

    async def answer(self, call: ArmCall) -> ArmAnswers:
        self.calls.append(call)
        self.open += len(call.question_ids)
        self.peak = max(self.peak, self.open)
        try:
            replies = await self._reply(call)
        except asyncio.CancelledError:
            self.cancelled.append(call)
            raise
        finally:
            self.open -= len(call.question_ids)
        self.ended.append(call)
        results = [
            QuestionResult(question_id, correct, stop_reason)
            for question_id, (correct, stop_reason) in zip(call.question_ids, replies, strict=True)
        ]
        return ArmAnswers(tuple(results), Usage(len(results), 0, 10 * len(results)))
