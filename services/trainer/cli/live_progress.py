"""What a person sees while a run goes on (TRN-13): a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from services.trainer.cli.running import people
from services.trainer.domain.answering import Answer
from services.trainer.domain.gate_round import ArmResolved, GateEvent, PairConsumed, RoundOutcome, VerdictFrozen
from services.trainer.domain.schedule import Position


class LiveProgress:
    """The `Progress` port on rich. Use it as a context manager."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _TimeLeft(),
            console=people,
        )
        self._task = self._bar.add_task("starting", total=None)
        self._terminal = people.is_terminal
        self._calls = self._hits = self._tokens = 0
        self._gates: dict[str, _GateLine] = {}
        self._live = Live(console=people, refresh_per_second=8, transient=True, get_renderable=self._render)

    def __enter__(self) -> Self:
        if self._terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._terminal:
            self._live.stop()

    def phase(self, name: str, total: int | None = None, position: Position | None = None) -> None:
        """A piece of work begins."""
        where = "" if position is None else f"epoch {position.epoch} step {position.step}  "
        self._bar.reset(self._task, total=total, description=f"{where}{name}", completed=0)
        self._gates.clear()
        if not self._terminal:
            size = "" if total is None else f" ({total})"
            people.print(f"{where}{name}{size}", markup=False)

    def answered(self, answer: Answer) -> None:
        """A question was answered."""
        self._calls += answer.model_calls
        self._hits += answer.cache_hits
        self._tokens += answer.prompt_tokens + answer.completion_tokens
        self._bar.advance(self._task)

    def advanced(self, done: int, total: int) -> None:
        """The current piece of work is this far."""
        self._bar.update(self._task, completed=done, total=total)

    def gate_event(self, event: GateEvent) -> None:
        """Something happened in a gate round."""
        if isinstance(event, RoundOutcome):
            for outcome in event.outcomes:
                self._calls += outcome.model_calls
                self._hits += outcome.response_cache_hits
                self._tokens += outcome.tokens
            return
        line = self._gates.setdefault(event.task_type, _GateLine())
        if isinstance(event, ArmResolved):
            line.arms += 1
        elif isinstance(event, PairConsumed):
            line.w, line.l, line.e_value = event.row.w, event.row.l, event.row.e_value
            line.used, line.launched, line.planned = event.n_used, event.launched, event.n_planned
            self._bar.advance(self._task)
        elif isinstance(event, VerdictFrozen):
            line.decision = event.verdict.decision.upper()

    def note(self, text: str) -> None:
        """One line that stays."""
        people.print(text, markup=False)

    def _render(self) -> Group:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for title in ("gate", "W-L", "E", "used/launched/planned", "arms", "verdict"):
            table.add_column(title)
        for task_type, line in sorted(self._gates.items()):
            table.add_row(task_type, *line.cells())
        spent = Text(f"{self._calls} model calls, {self._hits} from the cache, {self._tokens} tokens", style="dim")
        return Group(self._bar, table, spent) if self._gates else Group(self._bar, spent)


class _TimeLeft(TimeRemainingColumn):
    """The time left, where it can be told."""

    def render(self, task: Task) -> Text:
        return Text("") if task.time_remaining is None else Text("left ").append_text(super().render(task))


class _GateLine:
    """Where one type's gate stands."""

    def __init__(self) -> None:
        self.w = self.l = self.used = self.launched = self.planned = self.arms = 0
        self.e_value = 1.0
        self.decision = ""

    def cells(self) -> tuple[str, ...]:
        units = f"{self.used}/{self.launched}/{self.planned}"
        return (f"{self.w}-{self.l}", f"{self.e_value:.3g}", units, str(self.arms), self.decision or "...")
