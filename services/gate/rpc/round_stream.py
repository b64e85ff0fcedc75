"""A round as a stream of messages, ended with the stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from videotree.gate.v1 import gate_service_pb2

from services.gate.domain.round_events import Event, VerdictFrozen
from services.gate.domain.round_spec import RoundSpec
from services.gate.rpc.round_metrics import RoundMetrics
from services.gate.rpc.translate_round import event_to, outcome_to
from services.gate.use_cases.validate_skills import ValidateSkills
from services.runtime.logging import get_logger

_log = get_logger(__name__)


async def stream_round(
    validate: ValidateSkills, spec: RoundSpec
) -> AsyncIterator[gate_service_pb2.ValidateSkillsResponse]:
    """Each event as it happens, the outcome last; raises what the round raises.

    When the stream is closed before its end, the round is cancelled and awaited.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    round_task = asyncio.create_task(validate.run(spec, events.put_nowait))
    round_task.add_done_callback(lambda _: events.put_nowait(None))
    try:
        with RoundMetrics(spec.workspace) as metrics:
            while (event := await events.get()) is not None:
                metrics.happened(event)
                _log_verdict(spec, event)
                yield event_to(event)
        yield outcome_to(await round_task)
    finally:
        round_task.cancel()
        await asyncio.gather(round_task, return_exceptions=True)


def _log_verdict(spec: RoundSpec, event: Event) -> None:
    if isinstance(event, VerdictFrozen):
        _log.info(
            "verdict",
            workspace=spec.workspace,
            run_id=spec.run_id,
            epoch=spec.epoch,
            step=spec.step,
            task_type=event.task_type,
            decision=event.verdict.decision.value,
            reason=event.verdict.reason,
        )
