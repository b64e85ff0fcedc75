"""The response cache as calls use it: it never fails and never holds a call up (INF-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from services.inference.domain.breaker import Breaker, Refusal
from services.inference.domain.errors import CacheUnavailable
from services.inference.domain.outcome import Outcome
from services.inference.use_cases.ports import CacheFault, CallObserver, ResponseCache

T = TypeVar("T")

_ADMIN_SECONDS = 60.0
_LATE_LOOP_PASSES = 3
_FAIL_THRESHOLD = 3
_COOLDOWN_SECONDS = 1.0
_WARNING_EVERY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Figures about the cache; the counts are since the service started."""

    backend: str
    entry_count: int
    size_bytes: int | None
    hit_count: int
    miss_count: int
    error_count: int
    ttl_seconds: int


class CacheLooks:
    """What one call looks up: once for each endpoint whose turn comes; all looks together wait as long as one may."""

    def __init__(self, look: Callable[[str, float], Awaitable[bytes | None]], patience_seconds: float) -> None:
        self._look = look
        self._left = patience_seconds

    async def get(self, key: str) -> bytes | None:
        """What is kept under `key`; `None` also when the cache is away."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            return await self._look(key, self._left)
        finally:
            self._left -= clock() - began


class GuardedCache:
    """A `ResponseCache` with a limit on the wait, a breaker of its own and counts.

    While the technology is away a call meets it at most once in a cooldown. `warn` gets at most one text a minute.
    """

    def __init__(
        self, cache: ResponseCache, ttl_seconds: int, observer: CallObserver, warn: Callable[[str], None]
    ) -> None:
        self._cache = cache
        self._ttl_seconds = ttl_seconds
        self._observer = observer
        self._warn = warn
        self._breaker = Breaker(_FAIL_THRESHOLD, _COOLDOWN_SECONDS)
        self._last_warning: float | None = None
        self._hits = self._misses = self._errors = 0

    def looks(self) -> CacheLooks:
        """The looks of one call."""
        return CacheLooks(self._look, self._cache.patience_seconds)

    async def set(self, key: str, value: bytes) -> None:
        """Keep `value` for the configured life, if the cache is there."""

        async def store() -> None:
            await self._cache.set(key, value, self._ttl_seconds)
            self._observer.cache_used("stored")

        await self._guarded(store, self._cache.patience_seconds)

    def count(self, *, hit: bool) -> None:
        """A look that had an answer of use, or none."""
        if hit:
            self._hits += 1
        else:
            self._misses += 1
        self._observer.cache_used("hit" if hit else "miss")

    async def stats(self) -> CacheStats:
        """Figures for operators. Raises `CacheUnavailable`."""
        size = await self._asked(self._cache.size())
        return CacheStats(
            self._cache.backend, size.entry_count, size.size_bytes,
            self._hits, self._misses, self._errors, self._ttl_seconds,
        )  # fmt: skip

    async def extend(self, ttl_seconds: int) -> tuple[int, int]:
        """Renew entries with a shorter life left; (renewed, seen). Raises `CacheUnavailable`."""
        return await self._asked(self._cache.extend(ttl_seconds))

    async def purge(self, key_prefix: str) -> int:
        """Remove entries by the beginning of their key; how many. Raises `CacheUnavailable`."""
        return await self._asked(self._cache.purge(key_prefix))

    async def close(self) -> None:
        """Let go of connections and files."""
        await self._cache.close()

    async def _look(self, key: str, seconds: float) -> bytes | None:
        return await self._guarded(lambda: self._cache.get(key), seconds)

    async def _guarded(self, operation: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T | None:
        clock = asyncio.get_running_loop().time
        lease = None if seconds <= 0 else self._breaker.claim(clock())
        if lease is None or isinstance(lease, Refusal):
            self._observer.cache_used("skipped")
            return None
        outcome = Outcome.CANCELLED
        try:
            result = await _within(seconds, operation())
            outcome = Outcome.OK
            return result
        except (CacheFault, TimeoutError) as fault:
            outcome = Outcome.TRANSIENT
            self._failed(fault, clock())
            return None
        finally:
            self._breaker.settle(lease, outcome, clock())

    async def _asked(self, operation: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(_ADMIN_SECONDS):
                return await operation
        except (CacheFault, TimeoutError) as fault:
            raise CacheUnavailable(f"the {self._cache.backend} cache did not answer: {fault or 'timeout'}") from None

    def _failed(self, fault: Exception, now: float) -> None:
        self._errors += 1
        self._observer.cache_used("fault")
        if self._last_warning is None or now - self._last_warning >= _WARNING_EVERY_SECONDS:
            self._last_warning = now
            reason = str(fault) or "no answer in time"
            self._warn(f"the {self._cache.backend} response cache is away, calls go on without it: {reason}")


async def _within(seconds: float, operation: Coroutine[Any, Any, T]) -> T:
    """The operation's result. Raises `TimeoutError` when it takes longer, unless it was this process that was late."""
    task = asyncio.get_running_loop().create_task(operation)
    try:
        await asyncio.wait((task,), timeout=seconds)
        for _ in range(_LATE_LOOP_PASSES):
            if task.done():
                break
            # After a stall of the loop its timers come first; the answer may lie in the socket already.
            await asyncio.sleep(0)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        task.cancel()
