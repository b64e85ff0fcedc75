"""How long agents wait for an endpoint that refuses calls, before their questions become missing data."""

from collections.abc import Callable

_SHORTEST_WAIT_SECONDS = 0.2
_SPREAD = 0.25


class Patience:
    """One outage's worth of waiting, shared by all questions of a process.

    An open breaker refuses calls at once. Without patience a restart of the endpoint that takes ten seconds would turn
    every question of a batch into an error within those ten seconds. With it the questions wait, but all of them
    together no longer than `seconds` from the first refusal: an endpoint that stays away fails the rest at once.
    `clock` gives seconds, `draw` a number in [0, 1) that spreads the return of many waiters.
    """

    def __init__(self, seconds: float, clock: Callable[[], float], draw: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._draw = draw
        self._outage_began = float("-inf")
        self._last_refusal = float("-inf")

    def answered(self) -> None:
        """A call was answered: the outage, if there was one, is over."""
        self._last_refusal = float("-inf")

    def wait_after(self, refusal_seconds: float, deadline: float | None) -> float | None:
        """Seconds to wait before the call is made again, or None if patience or the deadline is used up.

        `refusal_seconds` is what the refusal says of the time until the endpoint may be tried.
        """
        now = self._clock()
        if now - self._last_refusal > self._seconds:
            self._outage_began = now
        self._last_refusal = now
        wait = max(refusal_seconds, _SHORTEST_WAIT_SECONDS) * (1 + _SPREAD * self._draw())
        too_late = now + wait > self._outage_began + self._seconds
        return None if too_late or (deadline is not None and now + wait > deadline) else wait
