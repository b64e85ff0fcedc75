"""The response cache on this machine's disk, for where no Redis is set (`diskcache`: SQLite and files)."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import diskcache  # type: ignore[import-untyped]

from services.inference.use_cases.ports import CacheFault, CacheSize

T = TypeVar("T")

# The disk is this machine's own: when it is late, so is everything else, and a missed answer would be asked anew.
_PATIENCE_SECONDS = 2.0
_BATCH = 200
_SQLITE_TIMEOUT_SECONDS = 1.0
# The library's own 32 MiB of pages and 64 MiB of mapped file let the service grow for hours; the system caches files.
_SQLITE_CACHE_PAGES = 512
_SQLITE_MMAP_BYTES = 0
_RAW_MODES = (diskcache.core.MODE_RAW, diskcache.core.MODE_BINARY)


class _BytesDisk(diskcache.Disk):  # type: ignore[misc]
    """Stores bytes as they are and reads nothing else: a cache directory must never be able to run code (pickle)."""

    def store(self, value: Any, read: bool, key: Any = diskcache.UNKNOWN) -> Any:
        if not isinstance(value, bytes):
            raise TypeError("the response cache keeps bytes only")
        return super().store(value, read, key)

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
        if mode not in _RAW_MODES:
            raise ValueError("the cache directory holds an entry that this service did not write")
        return super().fetch(mode, filename, value, read)

    def get(self, key: Any, raw: bool) -> Any:
        if not raw:
            raise ValueError("the cache directory holds a key that this service did not write")
        return super().get(key, raw)


class DiskCache:
    """Implements `ResponseCache`. All file access is in one thread of its own, in the order of the calls.

    Bounded by `max_bytes`: the entries stored longest ago go first. Raises OSError when `directory` can't be made.
    """

    def __init__(self, directory: Path, max_bytes: int) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="disk-cache")
        self._cache = self._thread.submit(partial(_open, directory, max_bytes)).result()

    @property
    def backend(self) -> str:
        """`disk`."""
        return "disk"

    @property
    def patience_seconds(self) -> float:
        """See `ResponseCache`."""
        return _PATIENCE_SECONDS

    async def get(self, key: str) -> bytes | None:
        """See `ResponseCache`."""
        value: bytes | None = await self._run(lambda: self._cache.get(key))
        return value

    async def set(self, key: str, value: bytes, ttl_seconds: int) -> None:
        """See `ResponseCache`."""
        await self._run(lambda: self._cache.set(key, value, expire=ttl_seconds))

    async def size(self) -> CacheSize:
        """See `ResponseCache`; the bytes are those of all files."""
        return await self._run(lambda: CacheSize(len(self._cache), int(self._cache.volume())))

    async def extend(self, ttl_seconds: int) -> tuple[int, int]:
        """See `ResponseCache`."""
        renewed = seen = 0
        for keys in _batches(await self._keys("")):
            seen += len(keys)
            renewed += await self._run(partial(self._extend_each, keys, ttl_seconds))
        return renewed, seen

    async def purge(self, key_prefix: str) -> int:
        """See `ResponseCache`."""
        removed = 0
        for keys in _batches(await self._keys(key_prefix)):
            removed += await self._run(partial(self._delete_each, keys))
        return removed

    async def close(self) -> None:
        """Close the database once what is under way has ended."""
        await self._run(self._cache.close)
        self._thread.shutdown()

    async def _keys(self, prefix: str) -> list[str]:
        return await self._run(lambda: [key for key in self._cache.iterkeys() if key.startswith(prefix)])

    def _delete_each(self, keys: list[str]) -> int:
        return sum(map(self._cache.delete, keys))

    def _extend_each(self, keys: list[str], ttl_seconds: int) -> int:
        until = time.time() + ttl_seconds
        renewed = 0
        for key in keys:
            value, expires = self._cache.get(key, expire_time=True)
            if value is not None and expires is not None and expires < until:
                renewed += self._cache.touch(key, expire=ttl_seconds)
        return renewed

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (OSError, sqlite3.Error, diskcache.Timeout, ValueError) as error:
            raise CacheFault(f"{type(error).__name__}: {error}") from None


def _open(directory: Path, max_bytes: int) -> diskcache.Cache:
    return diskcache.Cache(
        str(directory),
        timeout=_SQLITE_TIMEOUT_SECONDS,
        disk=_BytesDisk,
        size_limit=max_bytes,
        eviction_policy="least-recently-stored",
        sqlite_cache_size=_SQLITE_CACHE_PAGES,
        sqlite_mmap_size=_SQLITE_MMAP_BYTES,
    )


def _batches(keys: list[str]) -> list[list[str]]:
    return [keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH)]
