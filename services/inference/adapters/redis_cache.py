"""The response cache in Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from services.inference.domain.cache_key import KEY_PREFIX
from services.inference.use_cases.ports import CacheFault, CacheSize

# A call waits twice, to look and to keep, and both together shall cost less than 50 ms.
_PATIENCE_SECONDS = 0.02
_SOCKET_SECONDS = 0.05
_SCAN_COUNT = 1000
_MAX_CONNECTIONS = 16


class RedisCache:
    """Implements `ResponseCache`. No retries and short socket timeouts: the cache's guard decides what follows.

    Raises ValueError for a URL that is none. A few connections are enough, and opening many at once takes longer.
    """

    def __init__(self, url: str) -> None:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_MAX_CONNECTIONS,
            timeout=_SOCKET_SECONDS,
            socket_timeout=_SOCKET_SECONDS,
            socket_connect_timeout=_SOCKET_SECONDS,
            retry=Retry(NoBackoff(), 0),
            driver_info=None,
        )
        self._redis = Redis.from_pool(pool)

    @property
    def backend(self) -> str:
        """`redis`."""
        return "redis"

    @property
    def patience_seconds(self) -> float:
        """See `ResponseCache`."""
        return _PATIENCE_SECONDS

    async def get(self, key: str) -> bytes | None:
        """See `ResponseCache`."""
        with _faults():
            return cast("bytes | None", await self._redis.get(key))

    async def set(self, key: str, value: bytes, ttl_seconds: int) -> None:
        """See `ResponseCache`."""
        with _faults():
            await self._redis.set(key, value, ex=ttl_seconds)

    async def size(self) -> CacheSize:
        """Entries under this service's prefix, and the bytes of the whole Redis."""
        with _faults():
            count = 0
            async for keys in self._batches(f"{KEY_PREFIX}*"):
                count += len(keys)
            memory = await self._redis.info("memory")
            return CacheSize(count, int(memory["used_memory"]))

    async def extend(self, ttl_seconds: int) -> tuple[int, int]:
        """See `ResponseCache`; an entry without an end has longer to live than any."""
        renewed = seen = 0
        with _faults():
            async for keys in self._batches(f"{KEY_PREFIX}*"):
                seen += len(keys)
                lives = await self._each(keys, lambda pipe, key: pipe.pttl(key))
                short = [key for key, life in zip(keys, lives, strict=True) if 0 <= life < ttl_seconds * 1000]
                renewed += sum(await self._each(short, lambda pipe, key: pipe.expire(key, ttl_seconds)))
        return renewed, seen

    async def purge(self, key_prefix: str) -> int:
        """See `ResponseCache`."""
        removed = 0
        with _faults():
            async for keys in self._batches(f"{key_prefix}*"):
                removed += await self._redis.unlink(*keys)
        return removed

    async def close(self) -> None:
        """Close the connections."""
        with _faults():
            await self._redis.aclose()

    async def _batches(self, pattern: str) -> AsyncIterator[list[bytes]]:
        cursor = 0
        while True:
            cursor, keys = await self._redis.scan(cursor, match=pattern, count=_SCAN_COUNT)
            if keys:
                yield cast("list[bytes]", keys)
            if cursor == 0:
                return

    async def _each(self, keys: list[bytes], command: Callable[[Any, bytes], object]) -> list[int]:
        """One command a key, in one round trip."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for key in keys:
                command(pipe, key)
            return [int(answer) for answer in await pipe.execute()]


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise CacheFault(f"{type(error).__name__}: {error}") from None
