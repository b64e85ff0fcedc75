"""Workspaces and seeds on disk: a folder each, with a database in or beside it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from services.store.adapters import database_dialect, schema
from services.store.adapters.atomic_files import AtomicFiles
from services.store.adapters.disk_folder import DiskFolder
from services.store.adapters.sql_ledger import SqlLedger, storage_failed
from services.store.domain.errors import AlreadyExists, NotFound, StorageFailed
from services.store.use_cases.ports import Fill, LedgerFolder

_DRAFT = "/draft"  # a workspace's name holds no slash, so this is nobody else's schema


class DiskLedgerFolders:
    """The port LedgerFolders below one folder; with a PostgreSQL server, each database is a schema of it.

    A new folder is filled under a hidden name and renamed, so that it appears whole or not at all.
    """

    def __init__(self, root: Path, kind: str, database_name: str, *, readers: int = 4, postgres: str = "") -> None:
        self._root = root
        self._kind = kind
        self._database_name = database_name
        self._readers = readers
        self._postgres = postgres
        self._files = AtomicFiles()
        self._open: dict[str, LedgerFolder] = {}
        self._changing = asyncio.Lock()
        self._files.make_folder(root)

    async def open(self, name: str) -> LedgerFolder:
        """Return one; raises NotFound."""
        if name in self._open:
            return self._open[name]
        async with self._changing:
            if name not in self._open:
                if not (self._root / name).is_dir():
                    raise NotFound(self._kind, name, field=self._kind)
                self._open[name] = await asyncio.to_thread(self._open_at, name, self._root / name)
            return self._open[name]

    async def names(self) -> list[str]:
        """Return all names in ascending order."""
        return await asyncio.to_thread(DiskFolder(self._root, self._files).names)

    async def create(self, name: str, fill: Fill, *, replace: bool) -> LedgerFolder:
        """Make one that appears whole, or not at all if `fill` raises; raises AlreadyExists unless `replace`."""
        async with self._changing:
            if (self._root / name).exists() and not replace:
                raise AlreadyExists(f"{self._kind} {name!r} exists; it is only replaced with force", field="name")
            building = await asyncio.to_thread(self._files.hidden_folder, self._root / name)
            try:
                if self._postgres:
                    await asyncio.to_thread(database_dialect.create_schema, self._postgres, self._schema(name, _DRAFT))
                draft = await asyncio.to_thread(self._open_at, name, building, _DRAFT)
                try:
                    await fill(draft)
                finally:
                    await _close(draft)
                await asyncio.to_thread(self._files.sync_tree, building)
                await self._forget(name)
                if self._postgres:
                    schemas = (self._schema(name, _DRAFT), self._schema(name))
                    await asyncio.to_thread(database_dialect.replace_schema, self._postgres, *schemas)
                await asyncio.to_thread(self._files.install_folder, building, self._root / name)
            except OSError as error:
                raise StorageFailed(f"{self._kind} {name!r} could not be made: {error.strerror or error}") from error
            finally:
                shutil.rmtree(building, ignore_errors=True)
        return await self.open(name)

    async def close(self) -> None:
        """Finish all writes and close all databases."""
        async with self._changing:
            for name in list(self._open):
                await self._forget(name)

    def location(self, name: str) -> Path:
        """Return where a folder of this name stands, or would."""
        return self._root / name

    @property
    def databases_are_files(self) -> bool:
        """Whether each database is a file in its folder, and not a schema of a server."""
        return not self._postgres

    def database_file(self, folder: Path) -> Path:
        """Return the database file in a folder."""
        return folder / self._database_name

    async def _forget(self, name: str) -> None:
        opened = self._open.pop(name, None)
        if opened is not None:
            await _close(opened)

    def _open_at(self, name: str, folder: Path, schema_suffix: str = "") -> LedgerFolder:
        url = database_dialect.sqlite_url(self.database_file(folder))
        if self._postgres:
            url = database_dialect.schema_url(self._postgres, self._schema(name, schema_suffix))
        writing = database_dialect.writing_engine(url)
        try:
            schema.upgrade(writing)
        except SQLAlchemyError as error:
            writing.dispose()
            raise storage_failed(error) from error
        except BaseException:
            writing.dispose()
            raise
        reading = database_dialect.reading_engine(url, self._readers)
        ledger = SqlLedger(name, writing, reading, self._readers)
        return LedgerFolder(name, DiskFolder(folder, self._files), ledger)

    def _schema(self, name: str, suffix: str = "") -> str:
        return f"{self._kind}_{name}{suffix}"


def reading_engine_of(folder: LedgerFolder) -> Engine:
    """Return the engine behind a folder of ours; raises TypeError for a foreign one."""
    if not isinstance(folder.ledger, SqlLedger):
        raise TypeError("not a SQL ledger")
    return folder.ledger.reading_engine


async def _close(folder: LedgerFolder) -> None:
    if isinstance(folder.ledger, SqlLedger):
        await folder.ledger.close()
