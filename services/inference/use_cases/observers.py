"""Several observers as one."""

from __future__ import annotations

from collections.abc import Sequence

from services.inference.domain.outcome import Outcome
from services.inference.use_cases.ports import CallObserver, CallRecord


class AllObservers:
    """Implements `CallObserver` by telling each of `observers` in turn."""

    def __init__(self, observers: Sequence[CallObserver]) -> None:
        self._observers = tuple(observers)

    def call_ended(self, record: CallRecord) -> None:
        """See `CallObserver`."""
        for observer in self._observers:
            observer.call_ended(record)

    def attempt_ended(self, endpoint: str, outcome: Outcome, seconds: float) -> None:
        """See `CallObserver`."""
        for observer in self._observers:
            observer.attempt_ended(endpoint, outcome, seconds)

    def cache_used(self, event: str) -> None:
        """See `CallObserver`."""
        for observer in self._observers:
            observer.cache_used(event)
