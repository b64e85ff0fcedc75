"""What an operator can see and do: endpoints, breakers and the response cache (INF-5, INF-8, INF-11)."""

from __future__ import annotations

from collections.abc import Iterable

from services.inference.domain.cache_key import salt_key_prefix
from services.inference.domain.errors import InvalidRequest, UnknownEndpoint
from services.inference.use_cases.guarded_cache import CacheStats, GuardedCache
from services.inference.use_cases.guarded_endpoint import EndpointStatus, GuardedEndpoint


class Operations:
    """Acts on the endpoints and the cache that calls use."""

    def __init__(self, endpoints: Iterable[GuardedEndpoint], cache: GuardedCache, cooldown_seconds: float) -> None:
        self._endpoints = {guarded.endpoint.name: guarded for guarded in endpoints}
        self._cache = cache
        self._cooldown_seconds = cooldown_seconds

    def list_endpoints(self) -> list[EndpointStatus]:
        """The endpoints by name."""
        return [self._endpoints[name].status() for name in sorted(self._endpoints)]

    def force_open(self, name: str, seconds: float | None) -> EndpointStatus:
        """Open a breaker for `seconds`, by default the cooldown. Raises `UnknownEndpoint`, `InvalidRequest`."""
        if seconds is not None and seconds <= 0:
            raise InvalidRequest("the time to stay open must be above 0", field="open_duration")
        guarded = self._find(name)
        guarded.force_open(self._cooldown_seconds if seconds is None else seconds)
        return guarded.status()

    def reset(self, name: str) -> EndpointStatus:
        """Close a breaker and forget its failures. Raises `UnknownEndpoint`."""
        guarded = self._find(name)
        guarded.reset()
        return guarded.status()

    async def cache_stats(self) -> CacheStats:
        """Figures about the cache. Raises `CacheUnavailable`."""
        return await self._cache.stats()

    async def extend_cache(self, ttl_seconds: float) -> tuple[int, int]:
        """Renew entries with less than `ttl_seconds` left; (renewed, seen). Raises `InvalidRequest`."""
        if ttl_seconds <= 0 or ttl_seconds != int(ttl_seconds):
            raise InvalidRequest("must be whole seconds above 0", field="ttl_duration")
        return await self._cache.extend(int(ttl_seconds))

    async def purge_cache(self, salt: str | None) -> int:
        """Remove the entries that were made with `salt`; how many. Raises `CacheUnavailable`."""
        return await self._cache.purge(salt_key_prefix(salt))

    def _find(self, name: str) -> GuardedEndpoint:
        guarded = self._endpoints.get(name)
        if guarded is None:
            known = ", ".join(sorted(self._endpoints)) or "none"
            raise UnknownEndpoint(f"no endpoint is called {name!r}; known: {known}", field="endpoint")
        return guarded
