"""One round: every type's candidate against the current skill, out of order and wide, counted strictly in order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from services.gate.domain.errors import InvalidRequest, arm_failure
from services.gate.domain.ladder import require_known
from services.gate.domain.power import smallest_confirmed_gain
from services.gate.domain.round_events import Event, RoundOutcome
from services.gate.domain.round_spec import RoundSpec, Target, TypeSpec
from services.gate.domain.type_round import TypeRound
from services.gate.domain.unit_result import Arm, ArmResult, count_parse_errors
from services.gate.use_cases.baseline_writer import BaselineWriter
from services.gate.use_cases.bases import base_text, baseline_keys
from services.gate.use_cases.launch_queue import Launch, LaunchQueue
from services.gate.use_cases.ports import (
    ArmAnswers,
    ArmCall,
    BaselineKey,
    BaselineRow,
    Inference,
    PooledUnit,
    Store,
)
from services.gate.use_cases.schedule import Scheduler
from services.skills import text_sha256

Emit = Callable[[Event], None]
Clock = Callable[[], float]


class ValidateSkills:
    """Runs rounds. `clock` returns seconds from any origin, and only ever rises."""

    def __init__(self, inference: Inference, store: Store, clock: Clock = time.monotonic) -> None:
        self._inference = inference
        self._store = store
        self._clock = clock

    async def run(self, spec: RoundSpec, emit: Emit) -> RoundOutcome:
        """The outcome of the round; `emit` is called with each event as it happens.

        Raises GuardTripped, AllUnitsExcluded, ArmFailed or another GateError; then, and when it is cancelled, every
        arm in flight has been cancelled and awaited before this returns.
        """
        started = self._clock()
        files = await self._store.skill_files(spec.workspace, spec.skills_version)
        units = await self._store.pooled_units(spec.workspace)
        for index, type_spec in enumerate(spec.types):
            _check_ladder(type_spec, units, f"specs[{index}].ladder")
        prompts = await self._prompts(spec)
        types = [
            TypeRound(one, text_sha256(base_text(one, files, prompts, f"specs[{index}]")), spec.options.guard)
            for index, one in enumerate(spec.types)
        ]
        keys = baseline_keys(spec, units, files)
        running = _Round(spec, types, keys, self._inference, self._store, lambda: self._clock() - started, emit)
        await running.run()
        elapsed = self._clock() - started
        gains = await asyncio.to_thread(_detectable_gains, spec.types)
        outcomes = [one.outcome(elapsed, gain) for one, gain in zip(types, gains, strict=True)]
        outcomes.sort(key=lambda outcome: outcome.task_type)
        return RoundOutcome(tuple(outcomes), elapsed, running.peak_in_flight)

    async def _prompts(self, spec: RoundSpec) -> Mapping[str, str]:
        if all(one.target is Target.SKILL for one in spec.types):
            return {}
        return await self._store.prompt_files(spec.workspace, spec.prompts_version)


def _detectable_gains(types: Sequence[TypeSpec]) -> list[float | None]:
    return [smallest_confirmed_gain(len(spec.ladder), spec.parameters) for spec in types]


class _Round:
    """The moving parts of one round: queue, slots, types and the writer of fresh base results."""

    def __init__(
        self,
        spec: RoundSpec,
        types: list[TypeRound],
        keys: Mapping[str, BaselineKey],
        inference: Inference,
        store: Store,
        elapsed: Clock,
        emit: Emit,
    ) -> None:
        self._spec = spec
        self._types = types
        self._keys = keys
        self._inference = inference
        self._store = store
        self._elapsed = elapsed
        self._emit = emit
        self._writer = BaselineWriter(store)
        sizes = [[len(unit.question_ids) for unit in one.spec.ladder] for one in types]
        self._queue = LaunchQueue(
            sizes, lambda lane, rank, arm: types[lane].needs(rank, arm), spec.options.max_speculation
        )
        self._scheduler = Scheduler(self._queue, spec.options.concurrency)

    @property
    def peak_in_flight(self) -> int:
        return self._scheduler.peak_in_flight

    async def run(self) -> None:
        if self._spec.options.uses_baseline_cache:
            for one in self._types:
                await self._take_cached(one)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._writer.run())
                await self._scheduler.run(self._launched, self._answer, self._settle)
                self._writer.close()
        except BaseExceptionGroup as failures:
            raise _first(failures) from failures

    async def _take_cached(self, one: TypeRound) -> None:
        asked: dict[BaselineKey, list[str]] = {}
        for unit in one.spec.ladder:
            asked.setdefault(self._keys[unit.unit_id], []).append(unit.unit_id)
        known: dict[str, bool] = {}
        for key, unit_ids in asked.items():
            known |= await self._store.cached_results(key, unit_ids)
        for rank, unit in enumerate(one.spec.ladder):
            if unit.unit_id in known:
                self._emit(one.take_cached(rank, known[unit.unit_id]))

    def _launched(self, launch: Launch) -> None:
        self._types[launch.lane].launch(launch.rank)

    async def _answer(self, launch: Launch) -> ArmAnswers:
        one = self._types[launch.lane]
        unit = one.spec.ladder[launch.rank]
        try:
            return await self._inference.answer(self._call(one.spec, unit.question_ids, launch.arm))
        except Exception as failure:
            raise arm_failure(one.spec.task_type, unit.unit_id, launch.arm, failure) from failure

    def _call(self, type_spec: TypeSpec, question_ids: tuple[str, ...], arm: Arm) -> ArmCall:
        spec, run_id = self._spec, self._spec.arm_run(type_spec.task_type, arm)
        base = arm is Arm.BASE
        candidate = {} if base else {type_spec.target_file: type_spec.candidate_text}
        is_prompt = type_spec.target is Target.PROMPT
        return ArmCall(
            workspace=spec.workspace,
            dataset=spec.dataset,
            question_ids=question_ids,
            skills_version=spec.skills_version,
            overrides={} if is_prompt else candidate,
            prompt_overrides=candidate if is_prompt else {},
            prompts_version=spec.prompts_version,
            run_id=run_id,
            salt=spec.options.base_salt if base else run_id,
            agent=spec.agent,
            concurrency=min(len(question_ids), spec.options.concurrency),
        )

    def _settle(self, launch: Launch, answers: ArmAnswers) -> None:
        one = self._types[launch.lane]
        result = one.fold(launch.arm, answers.questions, answers.usage)
        if launch.arm is Arm.BASE and not result.is_infra and self._spec.options.uses_baseline_cache:
            self._cache(one, launch.rank, result)
        was_frozen = one.prefix.frozen
        parse_count = count_parse_errors(answers.questions)
        for event in one.resolve(launch.rank, launch.arm, result, parse_count, self._elapsed()):
            self._emit(event)
        self._queue.advance(launch.lane, one.prefix.position)
        if one.prefix.frozen and not was_frozen:
            self._queue.freeze(launch.lane)
            if self._spec.options.cancel_in_flight:
                self._scheduler.cancel(launch.lane)

    def _cache(self, one: TypeRound, rank: int, result: ArmResult) -> None:
        unit_id, run_id = one.spec.ladder[rank].unit_id, self._spec.arm_run(one.spec.task_type, Arm.BASE)
        self._writer.add(BaselineRow(self._keys[unit_id], unit_id, result is ArmResult.RIGHT, run_id))


def _check_ladder(spec: TypeSpec, units: Mapping[str, PooledUnit], field: str) -> None:
    require_known(spec.task_type, [unit.unit_id for unit in spec.ladder], units, field)
    for rank, unit in enumerate(spec.ladder):
        pooled = units[unit.unit_id]
        if pooled.held_out:
            raise InvalidRequest(f"unit {unit.unit_id!r} is held out for the test", field=f"{field}[{rank}].unit_id")
        if spec.target is Target.SKILL and pooled.task_type != spec.task_type:
            message = f"unit {unit.unit_id!r} is of type {pooled.task_type!r}, not {spec.task_type!r}"
            raise InvalidRequest(message, field=f"{field}[{rank}].unit_id")
        if sorted(pooled.question_ids) != sorted(unit.question_ids):
            message = f"unit {unit.unit_id!r} has the questions {', '.join(sorted(pooled.question_ids))}"
            raise InvalidRequest(message, field=f"{field}[{rank}].question_ids")


def _first(failures: BaseExceptionGroup) -> BaseException:
    """The failure that ended the round; its siblings were only cancelled."""
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
