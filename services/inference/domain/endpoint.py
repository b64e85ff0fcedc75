"""One OpenAI-compatible upstream as it is configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from services.inference.domain.chat import Role


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The four timeouts of an attempt, in seconds.

    `connect`: until the connection stands. `first_token`: from sending the request to the first token; comments do
    not count. `between_tokens`: the largest allowed gap. `total`: the whole attempt.
    """

    connect: float = 5.0
    first_token: float = 120.0
    between_tokens: float = 60.0
    total: float = 600.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An upstream. `api_key` never shows in its `repr`; `base_url` ends without a slash, e.g. `http://host:8000/v1`.

    `parameters` are defaults of request fields; what a call says wins over them.
    """

    name: str
    roles: frozenset[Role]
    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    concurrency_limit: int = 32
    timeouts: Timeouts = Timeouts()
    parameters: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
