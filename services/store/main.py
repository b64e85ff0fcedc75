"""Composition root of the store: build, serve, stop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from services.runtime.config import ConfigError
from services.runtime.entry import service_main
from services.runtime.logging import get_logger
from services.runtime.serving import ServiceParts
from services.store.adapters.atomic_files import AtomicFiles, remove_leftovers
from services.store.adapters.data_root_lock import DataRootLock
from services.store.adapters.disk_backups import DiskBackups
from services.store.adapters.disk_folder import DiskFolder
from services.store.adapters.disk_ledger_folders import DiskLedgerFolders
from services.store.adapters.system_clock import utc_now
from services.store.config import StoreConfig
from services.store.domain.errors import DataRootInUse
from services.store.service import Ports, service_parts
from services.store.use_cases.manifests import ManifestProjection
from services.store.use_cases.ports import LedgerFolder
from services.store.use_cases.repair import repair_workspaces

_log = get_logger(__name__)
_OWN_LOG = "store"


async def build(config: StoreConfig) -> ServiceParts:
    """Return the store on the data root, which is locked and repaired; raises ConfigError if another store owns it."""
    lock = DataRootLock(config.data)
    try:
        lock.acquire()
    except (DataRootInUse, OSError) as error:
        raise ConfigError(f"data (VIDEOTREE_DATA): {error}") from error
    try:
        return await _on_locked_root(config, lock)
    except BaseException:
        lock.release()
        raise


async def _on_locked_root(config: StoreConfig, lock: DataRootLock) -> ServiceParts:
    root = config.data
    for folder in ("workspaces", "seeds"):
        for path in await asyncio.to_thread(AtomicFiles().finish_replacements, root / folder):
            _log.warning("finished an interrupted replacement", path=str(path))
    for path in await asyncio.to_thread(remove_leftovers, root):
        _log.warning("removed unfinished work", path=str(path))
    for path in await asyncio.to_thread(AtomicFiles().finish_additions, root / "library"):
        _log.warning("finished an interrupted addition", path=str(path))
    server = config.postgres_url.get_secret_value()
    workspaces = DiskLedgerFolders(
        root / "workspaces", "workspace", "harness.db", readers=config.readers, postgres=server
    )
    seeds = DiskLedgerFolders(root / "seeds", "seed", "baseline.db", readers=1)
    log = DiskLedgerFolders(root / "log", "log", "calls.db", readers=1)
    if _OWN_LOG not in await log.names():
        await log.create(_OWN_LOG, _empty, replace=False)
    projection = ManifestProjection()
    await repair_workspaces(workspaces, projection)
    ports = Ports(
        library=DiskFolder(root / "library", AtomicFiles()),
        workspaces=workspaces,
        seeds=seeds,
        backups=DiskBackups(root / "backups", workspaces),
        own_log=(await log.open(_OWN_LOG)).ledger,
        clock=utc_now,
    )

    async def close() -> None:
        for folders in (workspaces, seeds, log):
            await folders.close()
        lock.release()

    return service_parts(ports, projection, close)


async def _empty(_: LedgerFolder) -> None:
    """Leave a new database as the migrations made it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the store until it is told to stop; returns the exit code."""
    return service_main("store", StoreConfig, build, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
