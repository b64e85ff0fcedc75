"""Makes the record of one logical call, however it ends (INF-10)."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from services.inference.domain.chat import CacheMode, CacheStatus, CallOrigin, Role, Timing, Usage
from services.inference.domain.errors import EndpointsUnavailable, InvalidRequest, RoleNotConfigured, UpstreamError
from services.inference.domain.outcome import Outcome
from services.inference.use_cases.flight import Flight
from services.inference.use_cases.ports import CallObserver, CallRecord
from services.inference.use_cases.shared_calls import Answer

_STATUS_OF_MODE = {CacheMode.REFRESH: CacheStatus.REFRESH, CacheMode.BYPASS: CacheStatus.BYPASS}


class RecordedCall:
    """A context around one call; on leaving it, the observer hears of the call exactly once."""

    def __init__(self, role: Role, origin: CallOrigin, mode: CacheMode, observer: CallObserver) -> None:
        self.call_id = secrets.token_hex(16)
        self.cache_status = _STATUS_OF_MODE.get(mode, CacheStatus.MISS)
        self.timing = Timing(0.0)
        self._role = role
        self._origin = origin
        self._observer = observer
        self._started = datetime.now(UTC)
        self._start = time.perf_counter()
        self._flight: Flight[Any] | None = None
        self._joined = False
        self._endpoint = ""
        self._usage: Usage | None = None

    @property
    def attempts(self) -> int:
        """Upstream attempts of the flight that served the call."""
        return 0 if self._flight is None else self._flight.attempts

    def boarded(self, flight: Flight[Any], *, joined: bool) -> None:
        """The call waits for this flight; `joined` says that another call had started it."""
        self._flight = flight
        self._joined = joined
        if joined:
            self.cache_status = CacheStatus.JOINED

    def answered(self, answer: Answer[Any]) -> None:
        """The call has its answer."""
        self._usage = answer.value.usage
        self._endpoint = answer.endpoint
        if not self._joined:
            self.cache_status = answer.status
        timing = answer.timing
        self.timing = Timing(self._elapsed(), timing.first_token_seconds, timing.largest_gap_seconds)

    def __enter__(self) -> RecordedCall:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        endpoint = self._endpoint or (self._flight.endpoint if self._flight else "")
        timing = self.timing if error is None else Timing(self._elapsed())
        self._observer.call_ended(
            CallRecord(
                call_id=self.call_id,
                role=self._role,
                origin=self._origin,
                started=self._started,
                outcome=_outcome_of(error),
                cache_status=self.cache_status,
                endpoint="" if self.cache_status is CacheStatus.HIT else endpoint,
                attempts=self.attempts,
                usage=self._usage,
                timing=timing,
            )
        )

    def _elapsed(self) -> float:
        return time.perf_counter() - self._start


def _outcome_of(error: BaseException | None) -> Outcome:
    """A row's outcome: that of the last attempt; a call that no endpoint took is TRANSIENT, a refused one PERMANENT."""
    if error is None:
        return Outcome.OK
    if isinstance(error, UpstreamError):
        return error.outcome
    if isinstance(error, EndpointsUnavailable):
        return Outcome.TRANSIENT
    return Outcome.PERMANENT if isinstance(error, InvalidRequest | RoleNotConfigured) else Outcome.CANCELLED
