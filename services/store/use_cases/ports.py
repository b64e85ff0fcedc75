"""What the store's use cases need from the world."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
Row: TypeAlias = dict[str, Any]  # Any: a column holds whatever its table declares
Clock: TypeAlias = Callable[[], str]
"""Returns the present time as ISO 8601 UTC text with microseconds, so that texts sort as times."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which rows of one table: all conditions hold at once; text is compared exactly, case and underscores included.

    `order` defaults to the table's key and must end in one; `after` is the key of the last row already seen; `columns`
    empty means all; `distinct` leaves out rows that repeat the columns shown.
    """

    table: str
    equal: Mapping[str, object] = field(default_factory=dict)
    one_of: Mapping[str, Sequence[object]] = field(default_factory=dict)
    starting_with: Mapping[str, str] = field(default_factory=dict)
    not_containing: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    after: tuple[object, ...] | None = None
    columns: tuple[str, ...] = ()
    distinct: bool = False


class LedgerReader(Protocol):
    """Reads one database; no method changes a row. Raises StorageFailed when the database refuses."""

    def get(self, table: str, key: Mapping[str, object]) -> Row | None:
        """Return the row with this whole key, or None."""

    def find(self, query: Query) -> list[Row]:
        """Return all rows of the query, in its order."""

    def page(self, query: Query, limit: int, max_chars: int) -> tuple[list[Row], bool]:
        """Return the first rows and whether more follow: at most `limit`, and none after `max_chars` are reached."""

    def count(self, query: Query) -> int:
        """Return the number of rows of the query."""

    def sums(self, query: Query, by: Sequence[str], columns: Sequence[str]) -> list[Row]:
        """Return, for each combination of `by`, in ascending order: `by`, `row_count`, and for each column its sum and
        `<column>_missing`, the number of rows in which it is None."""


class LedgerTransaction(LedgerReader, Protocol):
    """Reads and writes inside one transaction: an exception undoes all of it."""

    def upsert(self, table: str, rows: Sequence[Row]) -> None:
        """Write rows; one with an existing key replaces that row as a whole."""

    def insert_missing(self, table: str, rows: Sequence[Row]) -> int:
        """Write the rows whose key does not exist yet; returns how many there were."""

    def delete(self, query: Query) -> int:
        """Delete the rows of the query (order and columns are ignored); returns how many there were."""


class Ledger(Protocol):
    """One database: many readers, one writer. A write is answered after it is on the disk."""

    async def read(self, action: Callable[[LedgerReader], T]) -> T:
        """Return what `action` finds in one consistent view."""

    async def write(self, action: Callable[[LedgerTransaction], T]) -> T:
        """Return what `action` returns, once all it wrote is durable; if it raises, nothing of it is kept."""

    async def append(self, table: str, rows: Sequence[Row]) -> None:
        """Upsert rows of one table, sharing a commit with concurrent appends."""

    async def append_answers(self, predictions: Sequence[Row], traces: Sequence[Row]) -> None:
        """Upsert predictions and traces; a prediction's traces replace all older ones of its (run, question)."""


class Folder(Protocol):
    """A folder whose files are only ever seen whole. Names are relative and may hold `/`; callers check them first."""

    @property
    def path(self) -> str:
        """The absolute path, for people."""

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is no such file."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file so that old or new content survives a crash; raises StorageFailed."""

    def publish(self, name: str, files: Mapping[str, bytes]) -> None:
        """Make a whole subfolder appear at once, in place of unfinished work; raises StorageFailed."""

    def add(self, name: str, files: Mapping[str, bytes]) -> None:
        """Write files into a subfolder beside those that stand there, all or none; raises StorageFailed."""

    def names(self, name: str = "") -> list[str]:
        """Return the names in a subfolder in ascending order, hidden ones left out; empty if it does not exist."""

    def remove(self, name: str) -> None:
        """Remove a file or subfolder; missing is no error."""

    def sub(self, name: str) -> Folder:
        """Return a subfolder, which need not exist yet."""


@dataclass(frozen=True, slots=True)
class LedgerFolder:
    """A workspace or seed: a folder and the database in it."""

    name: str
    files: Folder
    ledger: Ledger


Fill: TypeAlias = Callable[[LedgerFolder], Awaitable[None]]


class LedgerFolders(Protocol):
    """All workspaces, or all seeds."""

    async def open(self, name: str) -> LedgerFolder:
        """Return one; raises NotFound."""

    async def names(self) -> list[str]:
        """Return all names in ascending order."""

    async def create(self, name: str, fill: Fill, *, replace: bool) -> LedgerFolder:
        """Make one that appears whole, or not at all if `fill` raises; raises AlreadyExists unless `replace`."""


class Backups(Protocol):
    """Copies of workspaces."""

    async def make(self, source: LedgerFolder, backup: str, created_time: str) -> tuple[str, int]:
        """Make a consistent copy while the source is written; returns path and bytes; raises AlreadyExists."""

    async def restore(self, backup: str, workspace: str) -> LedgerFolder:
        """Make a workspace from a copy; raises NotFound, AlreadyExists, or PreconditionFailed (damaged)."""
