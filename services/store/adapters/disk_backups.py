"""Copies of workspaces on disk: the database by SQLite's online backup, the files beside it (STO-14)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from services.store.adapters import database_dialect, schema
from services.store.adapters.atomic_files import AtomicFiles
from services.store.adapters.disk_folder import DiskFolder
from services.store.adapters.disk_ledger_folders import DiskLedgerFolders, reading_engine_of
from services.store.adapters.sql_transaction import SqlTransaction
from services.store.domain.errors import AlreadyExists, NotFound, PreconditionFailed, StorageFailed
from services.store.domain.fingerprints import readable_json, sha256_hex
from services.store.domain.frozen_pools import POOLS_FILE, SPLIT_MANIFEST_FILE, backup_name
from services.store.domain.manifest import Manifest
from services.store.use_cases.manifests import MANIFEST_FILE, read_manifest, save_manifest
from services.store.use_cases.ports import LedgerFolder, LedgerTransaction, Query

INDEX_FILE = "backup.json"
_CHUNK_BYTES = 1024 * 1024


class DiskBackups:
    """The port Backups: one folder a copy, made under a hidden name and renamed, with an index of hashes.

    The database is copied first and says what belongs to the copy: versions are immutable and published before their
    row, so whatever the copied rows name is on disk.
    """

    def __init__(self, root: Path, workspaces: DiskLedgerFolders) -> None:
        self._root = root
        self._workspaces = workspaces
        self._files = AtomicFiles()
        self._making = asyncio.Lock()

    async def make(self, source: LedgerFolder, backup: str, created_time: str) -> tuple[str, int]:
        """Make a consistent copy while the source is being written; returns its path and size in bytes."""
        self._require_files()
        async with self._making:
            target = self._root / backup
            if target.exists():
                raise AlreadyExists(f"backup {backup!r} exists and is never overwritten", field="backup")
            building = await asyncio.to_thread(self._files.hidden_folder, target)
            try:
                size = await asyncio.to_thread(self._fill, source, building, created_time)
                await asyncio.to_thread(self._files.install_folder, building, target)
            except OSError as error:
                raise StorageFailed(f"backup {backup!r} could not be made: {error}") from error
            finally:
                shutil.rmtree(building, ignore_errors=True)
            return str(target.absolute()), size

    async def restore(self, backup: str, workspace: str) -> LedgerFolder:
        """Make a workspace from a copy; raises NotFound, AlreadyExists, or PreconditionFailed for a damaged copy."""
        self._require_files()
        source = self._root / backup
        if not source.is_dir():
            raise NotFound("backup", backup, field="backup")
        location = self._workspaces.location(workspace)
        if location.exists():
            raise AlreadyExists(f"workspace {workspace!r} exists; restore never overwrites", field="workspace")
        await asyncio.to_thread(_require_intact, source)
        building = await asyncio.to_thread(self._files.hidden_folder, location)
        try:
            await asyncio.to_thread(self._copy_back, source, building, workspace)
            await asyncio.to_thread(self._files.install_folder, building, location)
        except OSError as error:
            raise StorageFailed(f"backup {backup!r} could not be restored: {error.strerror or error}") from error
        finally:
            shutil.rmtree(building, ignore_errors=True)
        return await self._workspaces.open(workspace)

    def _require_files(self) -> None:
        if not self._workspaces.databases_are_files:
            raise PreconditionFailed(
                "workspaces on a PostgreSQL server are copied with pg_dump and restored with pg_restore"
            )

    def _fill(self, source: LedgerFolder, building: Path, created_time: str) -> int:
        database = self._workspaces.database_file(building)
        database_dialect.copy_online(reading_engine_of(source), database)
        manifest, versions = _copied_facts(database)
        folder, origin = DiskFolder(building, self._files), Path(source.files.path)
        folder.write(MANIFEST_FILE, readable_json(manifest.document()).encode())
        for kind, version in versions:
            self._files.copy_folder(origin / kind / version, building / kind / version)
        if (origin / "reports").is_dir():
            self._files.copy_folder(origin / "reports", building / "reports")
        if manifest.pools_sha256:
            _copy_pools(source, folder, manifest.pools_sha256)
        index = {"workspace": source.name, "created_time": created_time, "sha256": _hashes(building)}
        folder.write(INDEX_FILE, readable_json(index).encode())
        self._files.sync_tree(building)
        return sum(path.stat().st_size for path in _all_files(building))

    def _copy_back(self, source: Path, building: Path, workspace: str) -> None:
        self._files.copy_folder(source, building)
        (building / INDEX_FILE).unlink()
        writing = database_dialect.writing_engine(database_dialect.sqlite_url(self._workspaces.database_file(building)))
        try:
            fault = database_dialect.integrity_fault(writing)
            if fault:
                raise PreconditionFailed(f"the copy's database is damaged: {fault}")
            schema.upgrade(writing)
            with writing.begin() as connection:
                _rename(SqlTransaction(connection), workspace)
        finally:
            writing.dispose()
        self._files.sync_tree(building)


def _copied_facts(database: Path) -> tuple[Manifest, list[tuple[str, str]]]:
    engine = database_dialect.reading_engine(database_dialect.sqlite_url(database), 1)
    try:
        with engine.connect() as connection, connection.begin():
            reader = SqlTransaction(connection)
            rows = reader.find(Query("versions", columns=("kind", "version")))
            return read_manifest(reader), [(row["kind"], row["version"]) for row in rows]
    finally:
        engine.dispose()


def _copy_pools(source: LedgerFolder, target: DiskFolder, sha256: str) -> None:
    """Copy the pools the copied manifest records; those that were replaced since lie under their backup name."""
    for suffix in ("", backup_name(sha256).removeprefix(POOLS_FILE)):
        pools, split = source.files.read(POOLS_FILE + suffix), source.files.read(SPLIT_MANIFEST_FILE + suffix)
        if pools is not None and split is not None and sha256_hex(pools) == sha256:
            target.write(POOLS_FILE, pools)
            target.write(SPLIT_MANIFEST_FILE, split)
            return
    raise PreconditionFailed(f"the pools with sha256 {sha256} are not on disk; freeze the split again first")


def _rename(transaction: LedgerTransaction, workspace: str) -> None:
    manifest = read_manifest(transaction)
    transaction.delete(Query("manifest"))
    save_manifest(transaction, replace(manifest, name=workspace))


def _require_intact(backup: Path) -> None:
    try:
        recorded = json.loads((backup / INDEX_FILE).read_bytes())["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PreconditionFailed(f"the copy has no readable {INDEX_FILE}") from error
    found = _hashes(backup)
    damaged = sorted(name for name in {*recorded, *found} if recorded.get(name) != found.get(name))
    if damaged:
        raise PreconditionFailed(f"the copy is damaged: {', '.join(damaged[:5])} changed, missing or added since")


def _hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): _file_sha256(path)
        for path in _all_files(folder)
        if path.relative_to(folder).parts != (INDEX_FILE,)
    }


def _file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _all_files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())
