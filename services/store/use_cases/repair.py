"""Bringing every workspace back to what its database says, at start (STO-2, STO-3, STO-4)."""

from __future__ import annotations

import asyncio
import logging

from services.store.domain.errors import StoreError
from services.store.domain.version_content import KINDS
from services.store.use_cases.manifests import ManifestProjection
from services.store.use_cases.pools import restore_interrupted_freeze
from services.store.use_cases.ports import LedgerFolder, LedgerFolders, Query

_log = logging.getLogger(__name__)


async def repair_workspaces(workspaces: LedgerFolders, projection: ManifestProjection) -> None:
    """Open and repair every workspace; one that is damaged is logged and refused when it is asked for."""
    for name in await workspaces.names():
        try:
            await repair(await workspaces.open(name), projection)
        except StoreError as error:
            _log.error("workspace %s can't be opened: %s", name, error)


async def repair(workspace: LedgerFolder, projection: ManifestProjection) -> list[str]:
    """Remove version folders that were never committed, undo a freeze that was not, rewrite a lagging manifest.json.

    Returns what was repaired, in words.
    """
    rows = await workspace.ledger.read(lambda reader: reader.find(Query("versions", columns=("kind", "version"))))
    published = {(row["kind"], row["version"]) for row in rows}
    done = await asyncio.to_thread(_remove_orphans, workspace, published)
    manifest = await projection.refresh(workspace)
    if await asyncio.to_thread(restore_interrupted_freeze, workspace, manifest.pools_sha256):
        done.append("an interrupted freeze was undone")
    for what in done:
        _log.warning("workspace %s: %s", workspace.name, what)
    return done


def _remove_orphans(workspace: LedgerFolder, published: set[tuple[str, str]]) -> list[str]:
    done = []
    for kind in KINDS:
        for name in workspace.files.names(kind):
            if (kind, name) not in published:
                workspace.files.remove(f"{kind}/{name}")
                done.append(f"{kind}/{name} was never committed and is removed")
    return done
