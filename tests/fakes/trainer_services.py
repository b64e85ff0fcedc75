"""All of the trainer's ports over a `World`, each call counted and able to crash, before or after its effect."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Any

from services.trainer.use_cases.ports import Services
from tests.fakes.trainer_models import FakeAgent, FakeEvolver, FakeGate, FakeModels
from tests.fakes.trainer_store import FakeStore
from tests.fakes.trainer_world import Crash, World


def services_of(world: World) -> Services:
    """The ports over this world."""
    store = FakeStore(world)
    fakes = {"agent": FakeAgent(world), "models": FakeModels(world), "gate": FakeGate(world)}
    fakes["evolver"] = FakeEvolver(world)
    names = [field.name for field in dataclasses.fields(Services)]
    return Services(**{name: Guarded(world, name, fakes.get(name, store)) for name in names})


class Guarded:
    """A port whose calls are counted; the one the world names crashes, before or after its effect."""

    def __init__(self, world: World, name: str, target: Any) -> None:
        self._world, self._name, self._target = world, name, target

    def __getattr__(self, method: str) -> Callable[..., Any]:
        call = getattr(self._target, method)
        if method in {"answer", "validate", "diagnose", "score_evidence"}:
            return lambda *args, **kwargs: self._stream(method, call, args, kwargs)

        async def guarded(*args: Any, **kwargs: Any) -> Any:
            doomed = self._count(method)
            if doomed and not self._world.crash_after_effect:
                raise Crash
            result = await call(*args, **kwargs)
            if doomed:
                raise Crash
            return result

        return guarded

    async def _stream(self, method: str, call: Any, args: Any, kwargs: Any) -> AsyncIterator[Any]:
        doomed = self._count(method)
        if doomed and not self._world.crash_after_effect:
            raise Crash
        async for item in call(*args, **kwargs):
            yield item
            if doomed:
                raise Crash

    def _count(self, method: str) -> bool:
        self._world.calls.append(f"{self._name}.{method}")
        return self._world.crash_at is not None and len(self._world.calls) == self._world.crash_at
