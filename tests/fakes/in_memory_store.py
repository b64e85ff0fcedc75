"""The whole store in memory: its ports as dictionaries, its use cases and servicers the real ones.

`in_memory_store_parts()` is served like any service, so a test of another room talks to it by the generated client:

    async with local_channel("store", in_memory_store_parts()) as channel: ...

Nothing survives the process, a transaction holds the event loop for its length, and `kill -9` has no meaning; all the
rest is held to the store's contract suite.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from services.runtime.serving import ServiceParts
from services.store.domain.errors import AlreadyExists, NotFound
from services.store.domain.manifest import parse_manifest
from services.store.domain.tables import KEYS
from services.store.service import Ports, service_parts
from services.store.use_cases.manifests import ManifestProjection
from services.store.use_cases.ports import (
    Fill,
    Folder,
    LedgerFolder,
    LedgerReader,
    LedgerTransaction,
    Query,
    Row,
)

T = TypeVar("T")
_Tables = dict[str, dict[tuple[Any, ...], Row]]


def ticking_clock() -> Callable[[], str]:
    """A clock that moves one microsecond a look, so that times are distinct and repeatable."""
    ticks = itertools.count()
    return lambda: f"2026-01-01T00:00:00.{next(ticks):06d}Z"


class InMemoryTransaction:
    """The port LedgerTransaction on dictionaries from key to row."""

    def __init__(self, tables: _Tables) -> None:
        self.tables = tables

    def get(self, table: str, key: Mapping[str, object]) -> Row | None:
        row = self.tables.get(table, {}).get(tuple(key[name] for name in KEYS[table]))
        return None if row is None else copy.deepcopy(row)

    def find(self, query: Query) -> list[Row]:
        order = query.order or KEYS[query.table]
        rows = sorted(self._matching(query), key=lambda row: tuple(row[name] for name in order))
        if query.after is not None:
            rows = [row for row in rows if tuple(row[name] for name in order) > query.after]
        shown = [{name: row[name] for name in query.columns or row} for row in rows]
        if query.distinct:
            shown = [dict(each) for each in dict.fromkeys(tuple(row.items()) for row in shown)]
        return copy.deepcopy(shown)

    def page(self, query: Query, limit: int, max_chars: int) -> tuple[list[Row], bool]:
        rows, chars = [], 0
        for row in self.find(query):
            if len(rows) == limit or (rows and chars >= max_chars):
                return rows, True
            rows.append(row)
            chars += sum(len(value) for value in row.values() if isinstance(value, str))
        return rows, False

    def count(self, query: Query) -> int:
        return len(self._matching(query))

    def sums(self, query: Query, by: Sequence[str], columns: Sequence[str]) -> list[Row]:
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in self._matching(query):
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        return [_summed(dict(zip(by, key, strict=True)), groups[key], columns) for key in sorted(groups)]

    def upsert(self, table: str, rows: Sequence[Row]) -> None:
        for row in rows:
            self.tables.setdefault(table, {})[tuple(row[name] for name in KEYS[table])] = copy.deepcopy(row)

    def insert_missing(self, table: str, rows: Sequence[Row]) -> int:
        before = len(self.tables.get(table, {}))
        for row in rows:
            self.tables.setdefault(table, {}).setdefault(tuple(row[name] for name in KEYS[table]), copy.deepcopy(row))
        return len(self.tables.get(table, {})) - before

    def delete(self, query: Query) -> int:
        doomed = [tuple(row[name] for name in KEYS[query.table]) for row in self._matching(query)]
        for key in doomed:
            del self.tables[query.table][key]
        return len(doomed)

    def _matching(self, query: Query) -> list[Row]:
        return [row for row in self.tables.get(query.table, {}).values() if _matches(row, query)]


def _matches(row: Row, query: Query) -> bool:
    return (
        all(row[name] == value for name, value in query.equal.items())
        and all(row[name] in values for name, values in query.one_of.items())
        and all(row[name].startswith(prefix) for name, prefix in query.starting_with.items())
        and all(part not in row[name] for name, part in query.not_containing.items())
    )


def _summed(group: Row, rows: Sequence[Row], columns: Iterable[str]) -> Row:
    group["row_count"] = len(rows)
    for name in columns:
        group[name] = sum(row[name] or 0 for row in rows)
        group[f"{name}_missing"] = sum(row[name] is None for row in rows)
    return group


class InMemoryLedger:
    """The port Ledger: a write that raises leaves the tables as they were."""

    def __init__(self) -> None:
        self.tables: _Tables = {}

    async def read(self, action: Callable[[LedgerReader], T]) -> T:
        return action(InMemoryTransaction(self.tables))

    async def write(self, action: Callable[[LedgerTransaction], T]) -> T:
        draft = {table: dict(rows) for table, rows in self.tables.items()}
        result = action(InMemoryTransaction(draft))
        self.tables = draft
        return result

    async def append(self, table: str, rows: Sequence[Row]) -> None:
        InMemoryTransaction(self.tables).upsert(table, rows)

    async def append_answers(self, predictions: Sequence[Row], traces: Sequence[Row]) -> None:
        transaction = InMemoryTransaction(self.tables)
        for row in predictions:
            transaction.delete(Query("traces", equal={name: row[name] for name in ("run_id", "question_id")}))
        transaction.upsert("predictions", predictions)
        transaction.upsert("traces", traces)


class InMemoryFolder:
    """The port Folder: a dictionary from path to content, shared by all subfolders."""

    def __init__(self, files: dict[str, bytes] | None = None, prefix: str = "/") -> None:
        self._files = {} if files is None else files
        self._prefix = prefix

    @property
    def path(self) -> str:
        return self._prefix.rstrip("/")

    def read(self, name: str) -> bytes | None:
        return self._files.get(self._prefix + name)

    def write(self, name: str, content: bytes) -> None:
        self._files[self._prefix + name] = content

    def publish(self, name: str, files: Mapping[str, bytes]) -> None:
        self.remove(name)
        for file_name, content in files.items():
            self.write(f"{name}/{file_name}", content)

    def add(self, name: str, files: Mapping[str, bytes]) -> None:
        for each, content in files.items():
            self.write(f"{name}/{each}", content)

    def names(self, name: str = "") -> list[str]:
        folder = f"{self._prefix}{name}/" if name else self._prefix
        inside = {path.removeprefix(folder).split("/")[0] for path in self._files if path.startswith(folder)}
        return sorted(each for each in inside if not each.startswith("."))

    def remove(self, name: str) -> None:
        doomed = self._prefix + name
        for path in [path for path in self._files if path == doomed or path.startswith(f"{doomed}/")]:
            del self._files[path]

    def sub(self, name: str) -> Folder:
        return InMemoryFolder(self._files, f"{self._prefix}{name}/")

    def copy(self) -> InMemoryFolder:
        return InMemoryFolder(dict(self._files), self._prefix)


class InMemoryLedgerFolders:
    """The port LedgerFolders."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.folders: dict[str, LedgerFolder] = {}

    async def open(self, name: str) -> LedgerFolder:
        if name not in self.folders:
            raise NotFound(self._kind, name, field=self._kind)
        return self.folders[name]

    async def names(self) -> list[str]:
        return sorted(self.folders)

    async def create(self, name: str, fill: Fill, *, replace: bool) -> LedgerFolder:
        if name in self.folders and not replace:
            raise AlreadyExists(f"{self._kind} {name!r} exists; it is only replaced with force", field="name")
        draft = LedgerFolder(name, InMemoryFolder(prefix=f"/{self._kind}s/{name}/"), InMemoryLedger())
        await fill(draft)
        self.folders[name] = draft
        return draft


class InMemoryBackups:
    """The port Backups: a copy is a copy of both dictionaries."""

    def __init__(self, workspaces: InMemoryLedgerFolders) -> None:
        self._workspaces = workspaces
        self._copies: dict[str, LedgerFolder] = {}

    async def make(self, source: LedgerFolder, backup: str, created_time: str) -> tuple[str, int]:
        if backup in self._copies:
            raise AlreadyExists(f"backup {backup!r} exists and is never overwritten", field="backup")
        self._copies[backup] = _copied(source, source.name)
        return f"/backups/{backup}", 1

    async def restore(self, backup: str, workspace: str) -> LedgerFolder:
        if backup not in self._copies:
            raise NotFound("backup", backup, field="backup")
        if workspace in self._workspaces.folders:
            raise AlreadyExists(f"workspace {workspace!r} exists; restore never overwrites", field="workspace")
        folder = _copied(self._copies[backup], workspace)
        self._workspaces.folders[workspace] = folder
        return folder


def _copied(source: LedgerFolder, name: str) -> LedgerFolder:
    assert isinstance(source.ledger, InMemoryLedger)
    assert isinstance(source.files, InMemoryFolder)
    ledger = InMemoryLedger()
    ledger.tables = copy.deepcopy(source.ledger.tables)
    (document,) = (row["document"] for row in ledger.tables["manifest"].values())
    document["name"] = name
    ledger.tables["manifest"] = {(name,): {"name": name, "document": parse_manifest(document).document()}}
    return LedgerFolder(name, source.files.copy(), ledger)


def in_memory_store_parts() -> ServiceParts:
    """An empty store, ready to be served."""
    workspaces = InMemoryLedgerFolders("workspace")
    ports = Ports(
        library=InMemoryFolder(),
        workspaces=workspaces,
        seeds=InMemoryLedgerFolders("seed"),
        backups=InMemoryBackups(workspaces),
        own_log=InMemoryLedger(),
        clock=ticking_clock(),
    )

    async def close() -> None:
        """Nothing is open."""

    return service_parts(ports, ManifestProjection(), close)
