"""An event loop whose clock jumps to the next timer: waits are exact and take no time, whatever the machine does."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Takes what is ready; with nothing ready it passes the time that it was told to wait to `jump`."""

    def __init__(self) -> None:
        super().__init__()
        self.jump: Callable[[float], None] = lambda _seconds: None

    def select(self, timeout: float | None = None) -> Any:
        """See `selectors.BaseSelector.select`."""
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everything waits, and no timer is set")
        if not ready and timeout:
            self.jump(timeout)
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """A loop for code that waits on timers and tasks alone; sockets and threads would be overtaken by its clock."""

    def __init__(self) -> None:
        selector = _JumpingSelector()
        self._now = 0.0
        super().__init__(selector)
        selector.jump = self._jump

    def time(self) -> float:
        """Seconds that were waited so far."""
        return self._now

    def _jump(self, seconds: float) -> None:
        self._now += seconds


def run_on_a_virtual_clock(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, on a loop whose time passes only by waiting."""
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(work)
