"""How units fared over two epochs, and the MOMENTUM block that is written from it (EVO-10)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from services.evolver.domain.reminders import reminder_fault
from services.skills import replace_block

MAX_LINE_CHARS = 400


class Change(Enum):
    """How a unit fared: (right in the earlier epoch, right in the later one)."""

    IMPROVED = (False, True)
    REGRESSED = (True, False)
    PERSISTENT = (False, False)
    STABLE = (True, True)


@dataclass(frozen=True, slots=True)
class UnitChange:
    """A unit that was answered in both epochs; `summary` is its question in short."""

    unit_id: str
    task_type: str
    earlier_correct: bool
    later_correct: bool
    summary: str

    @property
    def change(self) -> Change:
        """Which of the four it is."""
        return Change((self.earlier_correct, self.later_correct))


def sorted_changes(changes: Iterable[UnitChange]) -> dict[Change, list[UnitChange]]:
    """Return the units of each of the four kinds, by unit id."""
    found: dict[Change, list[UnitChange]] = {kind: [] for kind in Change}
    for unit in sorted(changes, key=lambda change: change.unit_id):
        found[unit.change].append(unit)
    return found


def with_momentum(text: str, lines: Sequence[str]) -> str:
    """Return `text` with the MOMENTUM block holding exactly these lines as a list."""
    return replace_block(text, "MOMENTUM", "\n".join(f"- {line}" for line in lines))


def momentum_faults(lines: Sequence[str], max_chars: int) -> list[str]:
    """Return what keeps these lines out of the block."""
    faults = [f"momentum: {line[:80]!r} {fault}" for line in lines if (fault := reminder_fault(line, MAX_LINE_CHARS))]
    length = sum(len(line) + 3 for line in lines)
    if length > max_chars:
        faults.append(f"momentum: the block has {length} characters, at most {max_chars} are allowed")
    return faults
