"""The order in which arms are launched: rank 0 of each type, then rank 1 of each, base before candidate. Pure.

The queue holds one cursor a type, not one entry an arm, so pending work costs no memory. It knows nothing of what the
results mean: it is told which types are frozen and how far each prefix has come.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.gate.domain.unit_result import Arm

_ARMS = (Arm.BASE, Arm.CAND)


@dataclass(frozen=True, slots=True)
class Launch:
    """One arm of one unit to be run: type `lane`, place `rank`, and the question slots that it takes."""

    lane: int
    rank: int
    arm: Arm
    slots: int


class LaunchQueue:
    """Pending arms of several types ("lanes"). `peek` and `pop` return the next one, None when nothing may start now.

    `sizes[lane][rank]` is the number of questions of a unit; `needed(lane, rank, arm)` says whether the arm has to be
    run at all. Units more than `max_speculation` ranks beyond a type's first unresolved one wait for `advance`.
    """

    def __init__(
        self,
        sizes: Sequence[Sequence[int]],
        needed: Callable[[int, int, Arm], bool],
        max_speculation: int | None = None,
    ) -> None:
        self._sizes = sizes
        self._needed = needed
        self._max_speculation = max_speculation
        self._cursor = [0] * len(sizes)
        self._position = [0] * len(sizes)
        self._frozen = [False] * len(sizes)
        self._parked: set[int] = set()
        self._ready = [(0, lane) for lane in range(len(sizes))]
        self._head: Launch | None = None

    def peek(self) -> Launch | None:
        """The next arm that may start, without taking it."""
        if self._head is None or self._frozen[self._head.lane]:
            self._head = self._find_next()
        return self._head

    def pop(self) -> Launch | None:
        """Take the next arm that may start."""
        launch, self._head = self.peek(), None
        return launch

    def freeze(self, lane: int) -> None:
        """Drop all that is queued of a type."""
        self._frozen[lane] = True

    def advance(self, lane: int, position: int) -> None:
        """Tell where a type's prefix stands; units that waited for it may start."""
        self._position[lane] = position
        if lane in self._parked and self._within_reach(lane):
            self._parked.discard(lane)
            self._push(lane)

    def _find_next(self) -> Launch | None:
        while self._ready:
            _, lane = self._ready[0]
            rank, arm_index = divmod(self._cursor[lane], len(_ARMS))
            if self._frozen[lane] or rank >= len(self._sizes[lane]):
                heapq.heappop(self._ready)
            elif not self._within_reach(lane):
                heapq.heappop(self._ready)
                self._parked.add(lane)
            else:
                self._cursor[lane] += 1
                if arm_index == len(_ARMS) - 1:
                    heapq.heapreplace(self._ready, (rank + 1, lane))
                if self._needed(lane, rank, _ARMS[arm_index]):
                    return Launch(lane, rank, _ARMS[arm_index], self._sizes[lane][rank])
        return None

    def _within_reach(self, lane: int) -> bool:
        if self._max_speculation is None:
            return True
        return self._cursor[lane] // len(_ARMS) <= self._position[lane] + self._max_speculation

    def _push(self, lane: int) -> None:
        heapq.heappush(self._ready, (self._cursor[lane] // len(_ARMS), lane))
