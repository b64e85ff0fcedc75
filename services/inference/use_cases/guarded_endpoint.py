"""One endpoint with what guards it: a breaker and a limit on calls in flight (INF-8, INF-9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from services.inference.domain.breaker import Breaker, BreakerState, Lease, Refusal
from services.inference.domain.endpoint import Endpoint
from services.inference.domain.outcome import AttemptFault, Outcome
from services.inference.use_cases.slots import SlotQueue

T = TypeVar("T")


class EndpointRefused(Exception):
    """The breaker lets nothing through; `wait_seconds` until it may."""

    def __init__(self, wait_seconds: float) -> None:
        super().__init__(f"breaker open for another {wait_seconds:.1f} s")
        self.wait_seconds = wait_seconds


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """What an operator sees of an endpoint; `wait_seconds` is `None` unless the breaker is open."""

    endpoint: Endpoint
    breaker_state: BreakerState
    consecutive_failures: int
    wait_seconds: float | None
    in_flight: int
    waiting: int
    attempt_count: int
    failure_count: int
    last_error: str


class GuardedEndpoint:
    """Runs attempts at one endpoint. Belongs to one event loop."""

    def __init__(self, endpoint: Endpoint, breaker: Breaker, clock: Callable[[], float]) -> None:
        self.endpoint = endpoint
        self._breaker = breaker
        self._clock = clock
        self._slots = SlotQueue(endpoint.concurrency_limit)
        self._attempt_count = 0
        self._failure_count = 0
        self._last_error = ""

    @property
    def last_error(self) -> str:
        """The last failure in words, without secrets; empty when there was none."""
        return self._last_error

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The attempt's result, made when slot and breaker allow it.

        Raises `EndpointRefused` at once while the breaker is open, also for those who wait for a slot when it opens,
        and what `attempt` raises. Slot and lease are given back however it ends.
        """
        refusal = self._breaker.refusal(self._clock())
        if refusal is not None:
            raise EndpointRefused(refusal.wait_seconds)
        await self._slots.acquire()
        try:
            lease = self._breaker.claim(self._clock())
            if isinstance(lease, Refusal):
                raise EndpointRefused(lease.wait_seconds)
            return await self._run_leased(lease, attempt)
        finally:
            self._slots.release()

    def force_open(self, seconds: float) -> None:
        """Open the breaker for `seconds`."""
        self._breaker.force_open(self._clock(), seconds)
        self._dismiss_waiting()

    def reset(self) -> None:
        """Close the breaker and forget its failures."""
        self._breaker.reset()

    def status(self) -> EndpointStatus:
        """A snapshot for operators."""
        now = self._clock()
        state = self._breaker.state(now)
        refusal = self._breaker.refusal(now)
        return EndpointStatus(
            endpoint=self.endpoint,
            breaker_state=state,
            consecutive_failures=self._breaker.consecutive_failures,
            wait_seconds=refusal.wait_seconds if refusal is not None and state is BreakerState.OPEN else None,
            in_flight=self._slots.in_flight,
            waiting=self._slots.waiting,
            attempt_count=self._attempt_count,
            failure_count=self._failure_count,
            last_error=self._last_error,
        )

    async def _run_leased(self, lease: Lease, attempt: Callable[[], Awaitable[T]]) -> T:
        self._attempt_count += 1
        outcome = Outcome.CANCELLED
        try:
            result = await attempt()
            outcome = Outcome.OK
            return result
        except AttemptFault as fault:
            outcome = fault.outcome
            self._last_error = fault.message
            raise
        finally:
            if outcome is not Outcome.OK:
                self._failure_count += 1
            if self._breaker.settle(lease, outcome, self._clock()):
                self._dismiss_waiting()

    def _dismiss_waiting(self) -> None:
        refusal = self._breaker.refusal(self._clock())
        if refusal is not None:
            self._slots.dismiss(partial(EndpointRefused, refusal.wait_seconds))
