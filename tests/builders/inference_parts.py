"""Builds a governed model over fake upstreams, with everything real in between."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.inference.config import InferenceConfig
from services.inference.domain.chat import ChatRequest, Message, Role
from services.inference.domain.endpoint import Endpoint, Timeouts
from services.inference.domain.outcome import Outcome
from services.inference.main import ModelParts, build_model
from services.inference.use_cases.ports import CallRecord


@dataclass
class RecordingObserver:
    """Keeps what it hears."""

    records: list[CallRecord] = field(default_factory=list)
    attempts: list[tuple[str, Outcome]] = field(default_factory=list)
    cache_events: list[str] = field(default_factory=list)

    def call_ended(self, record: CallRecord) -> None:
        """See `CallObserver`."""
        self.records.append(record)

    def attempt_ended(self, endpoint: str, outcome: Outcome, seconds: float) -> None:
        """See `CallObserver`."""
        self.attempts.append((endpoint, outcome))

    def cache_used(self, event: str) -> None:
        """See `CallObserver`."""
        self.cache_events.append(event)


@dataclass
class Governed:
    """A governed model, its parts, and what its observer heard."""

    parts: ModelParts
    observer: RecordingObserver

    def __getattr__(self, name: str) -> Any:
        return getattr(self.parts.model, name)

    def status(self, name: str = "e1") -> Any:
        """The endpoint's status."""
        return next(s for s in self.parts.operations.list_endpoints() if s.endpoint.name == name)


async def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Return once the condition holds; fail when it does not within `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


def endpoint(base_url: str, name: str = "e1", **fields: Any) -> Endpoint:
    """An endpoint for all roles with short timeouts."""
    values: dict[str, Any] = {
        "roles": frozenset(Role),
        "model": "m",
        "timeouts": Timeouts(connect=2, first_token=5, between_tokens=5, total=20),
        **fields,
    }
    return Endpoint(name=name, base_url=base_url, **values)


def request(text: str = "hi", role: Role = Role.AGENT, **fields: Any) -> ChatRequest:
    """A chat request with one user message."""
    return ChatRequest(role=role, messages=(Message("user", text),), **fields)


@contextlib.asynccontextmanager
async def governed(
    cache_dir: Path, *endpoints: Endpoint, by_role: Mapping[Role, list[Endpoint]] | None = None, **config: Any
) -> AsyncIterator[Governed]:
    """A governed model over the endpoints: real HTTP, real disk cache, retries without waiting unless told."""
    values: dict[str, Any] = {"cache_dir": cache_dir, "retry_base_seconds": 0.0, **config}
    observer = RecordingObserver()
    roles = by_role or {role: [e for e in endpoints if role in e.roles] for role in Role}
    parts = build_model(InferenceConfig(**values), roles, observer)
    try:
        yield Governed(parts, observer)
    finally:
        await parts.close()
