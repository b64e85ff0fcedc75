"""Which fault an attempt suffers, and how long it waits: a pure function of world, prompt and attempt number."""

from __future__ import annotations

from dataclasses import dataclass, replace

from services.simulator.domain.draws import Draws
from services.simulator.domain.errors import BadRequest
from services.simulator.domain.fault_kinds import FAULT_KINDS
from services.simulator.domain.world import FaultWorld, LatencyWorld

FAULT_HEADER = "X-Simulator-Fault"


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The fault of one attempt (`kind` empty: none) and what it needs to know."""

    kind: str = ""
    retry_after: str = "1"
    after_chunks: int = 2
    hold_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class LatencyPlan:
    """Seconds before the first byte, and between the chunks of a stream."""

    first_token_seconds: float = 0.0
    between_seconds: float = 0.0


def plan_fault(world: FaultWorld, model: str, draws: Draws, attempt: int) -> FaultPlan:
    """The fault of the given attempt at a prompt (counted from 0).

    After `attempts_per_prompt` faulty attempts a prompt is answered soundly, so that retries can be shown to help.
    """
    none = FaultPlan("", world.retry_after, world.after_chunks, world.hold_seconds)
    if not world.rates or attempt >= world.attempts_per_prompt or (world.models and model not in world.models):
        return none
    point = draws.uniform(f"fault/{attempt}")
    for kind, rate in world.rates.items():
        if point < rate:
            return replace(none, kind=kind)
        point -= rate
    return none


def read_fault_header(value: str, world: FaultWorld) -> FaultPlan:
    """The fault a request asks for itself: `kind`, or `kind; after_chunks=1; hold_seconds=0.5; retry_after=3`.

    `none` switches the world's faults off for the request. Raises BadRequest for anything else.
    """
    kind, *settings = [part.strip() for part in value.split(";") if part.strip()] or [""]
    if kind != "none" and kind not in FAULT_KINDS:
        raise BadRequest(f"{FAULT_HEADER}: {kind!r} is no fault; known are none, {', '.join(FAULT_KINDS)}")
    plan = FaultPlan("" if kind == "none" else kind, world.retry_after, world.after_chunks, world.hold_seconds)
    for setting in settings:
        name, _, text = (part.strip() for part in setting.partition("="))
        plan = _with(plan, name, text)
    return plan


def _with(plan: FaultPlan, name: str, text: str) -> FaultPlan:
    try:
        if name == "retry_after":
            return replace(plan, retry_after=text)
        if name == "after_chunks" and int(text) >= 0:
            return replace(plan, after_chunks=int(text))
        if name == "hold_seconds" and 0 <= float(text) < 3600:
            return replace(plan, hold_seconds=float(text))
    except ValueError:
        pass
    raise BadRequest(f"{FAULT_HEADER}: can't read {name}={text}; known are retry_after, after_chunks, hold_seconds")


def plan_latency(world: LatencyWorld, draws: Draws, is_right: bool | None) -> LatencyPlan:
    """The waiting times of an answer; `is_right` scales the median where the world says so."""
    median = world.median_ms * (world.right_factor if is_right else 1.0)
    return LatencyPlan(draws.log_normal("latency", median, world.sigma) / 1000, world.token_ms / 1000)
