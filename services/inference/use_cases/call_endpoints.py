"""Retries over a role's endpoints, inside the deadline (INF-1, INF-4): the only place that tries anything again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from services.inference.domain.endpoint import Endpoint
from services.inference.domain.errors import EndpointsUnavailable, InferenceError, upstream_error
from services.inference.domain.outcome import AttemptFault
from services.inference.use_cases.flight import Flight
from services.inference.use_cases.guarded_endpoint import EndpointRefused, GuardedEndpoint

T = TypeVar("T")

# A timer may fire a little before its time; what was asked to wait is over then.
_TIMER_SLACK_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how far apart. The wait before attempt n + 1 is uniform in [0, min(cap, base * 2^(n-1))] seconds
    (full jitter), or what `Retry-After` asks for if that is longer."""

    max_attempts: int = 4
    base_seconds: float = 0.5
    cap_seconds: float = 20.0


class Candidate:
    """One endpoint for one call. What would be sent to it is prepared when its turn comes, and once."""

    def __init__(self, guarded: GuardedEndpoint, prepare: Callable[[Endpoint], tuple[bytes, str]]) -> None:
        self.guarded = guarded
        self.not_before = 0.0
        self.looked_up = False
        self._prepare = prepare
        self._prepared: tuple[bytes, str] | None = None

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint as configured."""
        return self.guarded.endpoint

    def prepared(self) -> tuple[bytes, str]:
        """The request's body and the key of its answer in the cache. Raises `InvalidRequest`."""
        if self._prepared is None:
            self._prepared = self._prepare(self.endpoint)
        return self._prepared


class _RoundFailed(Exception):
    """Every endpoint was tried or refused, and another round may help."""

    def __init__(self, error: InferenceError) -> None:
        super().__init__(str(error))
        self.error = error


class EndpointCaller(Generic[T]):
    """One logical call over its candidates, tried in order: an open breaker or a transient fault moves on.

    `lookup` is asked once for each candidate whose turn comes, whatever its breaker says: it may have the answer.
    `attempt` makes one attempt at one candidate and raises `AttemptFault` or returns the answer.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        lookup: Callable[[Candidate], Awaitable[T | None]],
        attempt: Callable[[Candidate], Awaitable[T]],
        flight: Flight[T],
        policy: RetryPolicy,
    ) -> None:
        self._candidates = candidates
        self._lookup = lookup
        self._attempt = attempt
        self._flight = flight
        self._policy = policy
        self._clock = asyncio.get_running_loop().time

    async def call(self) -> T:
        """The first answer. Raises `EndpointsUnavailable` or an `UpstreamError`."""
        try:
            return await self._round()
        except _RoundFailed as failed:
            return await self._retried(failed)

    async def _retried(self, first: _RoundFailed) -> T:
        """Go on after the first round, which needs none of tenacity's machinery but counts as an attempt like any."""
        failed: _RoundFailed | None = first

        async def attempt() -> T:
            nonlocal failed
            if failed is not None:
                already, failed = failed, None
                raise already
            return await self._round()

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_RoundFailed), wait=self._wait, stop=self._stop, reraise=True
        )
        try:
            return await retrying(attempt)
        except _RoundFailed as last:
            raise last.error from None

    async def _round(self) -> T:
        failure: InferenceError | None = None
        waits: list[float] = []
        for candidate in self._candidates:
            found = await self._look_up(candidate)
            if found is not None:
                return found
            held_back = candidate.not_before - self._clock()
            if held_back > _TIMER_SLACK_SECONDS:
                waits.append(held_back)
                continue
            try:
                return await candidate.guarded.run(partial(self._attempt, candidate))
            except EndpointRefused as refused:
                waits.append(refused.wait_seconds)
            except AttemptFault as fault:
                failure = self._failure_of(fault, candidate)
        if failure is None:
            raise self._unavailable(min(waits))
        raise _RoundFailed(failure)

    async def _look_up(self, candidate: Candidate) -> T | None:
        if candidate.looked_up:
            return None
        candidate.looked_up = True
        return await self._lookup(candidate)

    def _failure_of(self, fault: AttemptFault, candidate: Candidate) -> InferenceError:
        """The failure to go on from; raises it when going on is not allowed."""
        delivered = not self._flight.take_back()
        error = upstream_error(fault, candidate.endpoint.name, delivered=delivered)
        if delivered or not fault.outcome.retryable:
            raise error from None
        if fault.retry_after_seconds is not None:
            candidate.not_before = self._clock() + fault.retry_after_seconds
        return error

    def _unavailable(self, wait_seconds: float) -> EndpointsUnavailable:
        reasons = "; ".join(
            f"{c.endpoint.name}: {c.guarded.last_error or 'opened by an operator'}" for c in self._candidates
        )
        return EndpointsUnavailable(
            f"no endpoint takes calls for another {wait_seconds:.1f} s ({reasons})", wait_seconds=wait_seconds
        )

    def _wait(self, state: RetryCallState) -> float:
        ceiling = min(self._policy.cap_seconds, self._policy.base_seconds * 2 ** (state.attempt_number - 1))
        asked = min(candidate.not_before for candidate in self._candidates) - self._clock()
        return max(random.uniform(0, ceiling), asked)  # noqa: S311 -- jitter, not a secret

    def _stop(self, state: RetryCallState) -> bool:
        if state.attempt_number >= self._policy.max_attempts:
            return True
        return self._clock() + state.upcoming_sleep >= self._flight.deadline
