"""What the gate counts beside its calls, and how far the rounds that run now have come."""

from __future__ import annotations

import math
from types import TracebackType

from services.gate.domain.round_events import ArmResolved, Event, PairConsumed, VerdictFrozen
from services.runtime.metrics import counter, gauge

_ARMS = counter("videotree_gate_arms", "Arms resolved, by arm and result", ["arm", "result", "cached"])
_VERDICTS = counter("videotree_gate_verdicts", "Terminal verdicts, by decision", ["decision"])
_TYPE = ["workspace", "task_type"]
_UNITS_USED = gauge("videotree_gate_units_used", "Units counted so far in the round that runs", _TYPE)
_UNITS_PLANNED = gauge("videotree_gate_units_planned", "Length of the ladder in the round that runs", _TYPE)
_LOG10_E = gauge("videotree_gate_log10_e", "log10 of E in the round that runs", _TYPE)


class RoundMetrics:
    """A context around one round of a workspace; what it showed of the round is gone on leaving it."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._shown: set[str] = set()

    def happened(self, event: Event) -> None:
        """Counts and shows an event."""
        match event:
            case ArmResolved():
                _ARMS.labels(event.arm, event.result, event.cached).inc()
            case VerdictFrozen():
                _VERDICTS.labels(event.verdict.decision).inc()
            case PairConsumed():
                self._show(event)

    def __enter__(self) -> RoundMetrics:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task_type in self._shown:
            for metric in (_UNITS_USED, _UNITS_PLANNED, _LOG10_E):
                metric.remove(self._workspace, task_type)

    def _show(self, event: PairConsumed) -> None:
        labels = (self._workspace, event.task_type)
        self._shown.add(event.task_type)
        _UNITS_USED.labels(*labels).set(event.n_used)
        _UNITS_PLANNED.labels(*labels).set(event.n_planned)
        _LOG10_E.labels(*labels).set(event.row.log_e / math.log(10))
