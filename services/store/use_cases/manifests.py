"""The manifest's row and its readable projection (STO-4)."""

from __future__ import annotations

import asyncio
import logging

from services.store.domain.errors import PreconditionFailed, StorageFailed
from services.store.domain.fingerprints import readable_json
from services.store.domain.manifest import Manifest, parse_manifest
from services.store.use_cases.ports import LedgerFolder, LedgerReader, LedgerTransaction, Query

MANIFEST_FILE = "manifest.json"
_log = logging.getLogger(__name__)


def read_manifest(reader: LedgerReader) -> Manifest:
    """Return a workspace's manifest; raises PreconditionFailed if its database holds none."""
    rows = reader.find(Query("manifest"))
    if len(rows) != 1:
        raise PreconditionFailed(f"the workspace's database holds {len(rows)} manifests; restore it from a backup")
    return parse_manifest(rows[0]["document"])


def save_manifest(transaction: LedgerTransaction, manifest: Manifest) -> None:
    """Write the manifest's row."""
    transaction.upsert("manifest", [{"name": manifest.name, "document": manifest.document()}])


class ManifestProjection:
    """Keeps `manifest.json` equal to the row.

    The row is read again under a lock, so that the newest one always wins. A projection that cannot be written does not
    undo the commit: it is logged and repaired after the next commit or at the next start.
    """

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}

    async def refresh(self, workspace: LedgerFolder) -> Manifest:
        """Rewrite the file if it lags; returns the manifest."""
        async with self._locks.setdefault(workspace.name, asyncio.Lock()):
            manifest = await workspace.ledger.read(read_manifest)
            content = readable_json(manifest.document()).encode()
            try:
                await asyncio.to_thread(_write_if_other, workspace, content)
            except StorageFailed as error:
                _log.warning("manifest.json of workspace %s lags behind its database: %s", workspace.name, error)
            return manifest


def _write_if_other(workspace: LedgerFolder, content: bytes) -> None:
    if workspace.files.read(MANIFEST_FILE) != content:
        workspace.files.write(MANIFEST_FILE, content)
