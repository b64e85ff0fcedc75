"""The circuit breaker of one endpoint (INF-8): a state machine; time is passed in, as seconds of a monotonic clock.

closed --(`fail_threshold` consecutive TRUNCATED or TRANSIENT)--> open --(`cooldown_seconds`)--> half open
half open: one probe holds a lease. Its OK closes, its failure opens again; cancelled or PERMANENT gives the lease back.
Every change of state starts a new generation; what an older generation reports is ignored, so that a late success
of a call from before the opening does not close it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from services.inference.domain.outcome import Outcome


class BreakerState(StrEnum):
    """What an endpoint's breaker lets through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to one attempt; `settle` it exactly once."""

    generation: int
    probe: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """No attempt now; `wait_seconds` until the next may be let through (the cooldown, while a probe is out)."""

    wait_seconds: float


class Breaker:
    """One endpoint's breaker. Not thread safe: it belongs to one event loop, and no method awaits.

    Only `state` and `refusal`, which change nothing, may also be asked by another thread.
    """

    def __init__(self, fail_threshold: int, cooldown_seconds: float) -> None:
        self._fail_threshold = fail_threshold
        self._cooldown_seconds = cooldown_seconds
        self._generation = 0
        self._consecutive_failures = 0
        self._open_until: float | None = None
        self._probe_out = False

    @property
    def consecutive_failures(self) -> int:
        """Failures since the last OK, in the present state."""
        return self._consecutive_failures

    def state(self, now: float) -> BreakerState:
        """The state at `now`."""
        until = self._open_until
        if until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now < until else BreakerState.HALF_OPEN

    def refusal(self, now: float) -> Refusal | None:
        """Why a call would be refused at `now`, without claiming anything; `None` if it would be let through."""
        until = self._open_until
        if until is None:
            return None
        if now < until:
            return Refusal(until - now)
        return Refusal(self._cooldown_seconds) if self._probe_out else None

    def claim(self, now: float) -> Lease | Refusal:
        """A lease for one attempt, or the refusal. In the half-open state the first claim is the only probe."""
        refused = self.refusal(now)
        if refused is not None:
            return refused
        probe = self._open_until is not None
        if probe:
            self._probe_out = True
        return Lease(self._generation, probe)

    def settle(self, lease: Lease, outcome: Outcome, now: float) -> bool:
        """Report how the attempt of `lease` ended; returns whether this opened the breaker."""
        if lease.generation != self._generation:
            return False
        if lease.probe:
            self._probe_out = False
        if outcome is Outcome.OK:
            self._settle_ok(lease)
            return False
        if not outcome.retryable:
            return False
        self._consecutive_failures += 1
        if lease.probe or self._consecutive_failures >= self._fail_threshold:
            self._open(now + self._cooldown_seconds)
            return True
        return False

    def force_open(self, now: float, seconds: float) -> None:
        """Open it for `seconds`."""
        self._open(now + seconds)

    def reset(self) -> None:
        """Close it and forget its failures."""
        self._generation += 1
        self._consecutive_failures = 0
        self._open_until = None
        self._probe_out = False

    def _settle_ok(self, lease: Lease) -> None:
        if lease.probe:
            self.reset()
        self._consecutive_failures = 0

    def _open(self, until: float) -> None:
        self._generation += 1
        self._open_until = until
        self._probe_out = False
