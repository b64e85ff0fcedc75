"""Cache and single flight around the endpoints (INF-5, INF-7), the same for chats and embeddings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from services.inference.domain.chat import CacheMode, CacheStatus, Completion, Delta, Embeddings, Timing
from services.inference.domain.endpoint import Endpoint
from services.inference.domain.outcome import AttemptFault, Outcome, require_no_key
from services.inference.domain.stored_answer import encode_answer
from services.inference.use_cases.call_endpoints import Candidate, EndpointCaller, RetryPolicy
from services.inference.use_cases.flight import Flight
from services.inference.use_cases.guarded_cache import CacheLooks, GuardedCache
from services.inference.use_cases.ports import CallObserver

T = TypeVar("T", Completion, Embeddings)

_STATUS_OF_MODE = {
    CacheMode.USE: CacheStatus.MISS,
    CacheMode.REFRESH: CacheStatus.REFRESH,
    CacheMode.BYPASS: CacheStatus.BYPASS,
}


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A complete answer and where it came from."""

    value: T
    endpoint: str
    status: CacheStatus
    timing: Timing


@dataclass(frozen=True, slots=True)
class CallKind(Generic[T]):
    """What differs between chats and embeddings: one attempt, and what the cache keeps."""

    attempt: Callable[[Endpoint, bytes, Callable[[Delta], None]], Awaitable[tuple[T, Timing]]]
    decode: Callable[[bytes], tuple[T, str] | None]
    may_be_kept: Callable[[T], bool]


class SharedCalls:
    """Starts flights, and lets identical calls in flight share one. Belongs to one event loop."""

    def __init__(self, cache: GuardedCache, policy: RetryPolicy, observer: CallObserver) -> None:
        self._cache = cache
        self._policy = policy
        self._observer = observer
        self._shared: dict[str, Flight[Any]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    def join(
        self, kind: CallKind[T], candidates: Sequence[Candidate], mode: CacheMode
    ) -> tuple[Flight[Answer[T]], bool]:
        """A flight for the call, and whether it was already under way.

        Only calls that use the cache share: `REFRESH` and `BYPASS` ask for an answer of their own.
        """
        key = candidates[0].prepared()[1]
        known = self._shared.get(key) if mode is CacheMode.USE else None
        if known is not None:
            return known, True
        flight: Flight[Answer[T]] = Flight()
        if mode is CacheMode.USE:
            self._shared[key] = flight
        task = flight.start(partial(self._fly, kind, candidates, mode), partial(self._forget, key, flight))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return flight, False

    async def close(self) -> None:
        """End every flight and wait until its connection and slot are given back."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, key: str, flight: Flight[Any]) -> None:
        if self._shared.get(key) is flight:
            del self._shared[key]

    async def _fly(
        self, kind: CallKind[T], candidates: Sequence[Candidate], mode: CacheMode, flight: Flight[Answer[T]]
    ) -> Answer[T]:
        caller = EndpointCaller(
            candidates,
            partial(self._look_up, kind, mode, self._cache.looks()),
            partial(self._attempt, kind, mode, flight),
            flight,
            self._policy,
        )
        answer = await caller.call()
        if answer.status in (CacheStatus.MISS, CacheStatus.REFRESH) and kind.may_be_kept(answer.value):
            key = next(c.prepared()[1] for c in candidates if c.endpoint.name == answer.endpoint)
            await self._cache.set(key, encode_answer(answer.value, answer.endpoint))
        return answer

    async def _look_up(
        self, kind: CallKind[T], mode: CacheMode, looks: CacheLooks, candidate: Candidate
    ) -> Answer[T] | None:
        if mode is not CacheMode.USE:
            return None
        start = asyncio.get_running_loop().time()
        stored = await looks.get(candidate.prepared()[1])
        found = None if stored is None else kind.decode(stored)
        self._cache.count(hit=found is not None)
        if found is None:
            return None
        value, endpoint = found
        return Answer(value, endpoint, CacheStatus.HIT, Timing(asyncio.get_running_loop().time() - start))

    async def _attempt(
        self, kind: CallKind[T], mode: CacheMode, flight: Flight[Answer[T]], candidate: Candidate
    ) -> Answer[T]:
        endpoint = candidate.endpoint
        clock = asyncio.get_running_loop().time
        start, outcome = clock(), Outcome.CANCELLED
        try:
            value, timing = await kind.attempt(endpoint, candidate.prepared()[0], flight.begin_attempt(endpoint.name))
            require_no_key(value.texts, endpoint.api_key)
            outcome = Outcome.OK
            return Answer(value, endpoint.name, _STATUS_OF_MODE[mode], timing)
        except AttemptFault as fault:
            outcome = fault.outcome
            raise fault.without(endpoint.api_key) from None
        finally:
            self._observer.attempt_ended(endpoint.name, outcome, clock() - start)
