"""Copies of workspaces and workspaces out of copies (STO-14)."""

from __future__ import annotations

from dataclasses import dataclass

from services.store.domain.manifest import Manifest
from services.store.domain.names import lower_component
from services.store.use_cases.manifests import ManifestProjection, read_manifest
from services.store.use_cases.ports import Backups, Clock, LedgerFolders


@dataclass(frozen=True, slots=True)
class BackupCopy:
    """Where a copy stands, its size in bytes and when it was made."""

    path: str
    size_bytes: int
    created_time: str


class BackupWorkspaces:
    """Makes and restores copies."""

    def __init__(
        self, workspaces: LedgerFolders, backups: Backups, projection: ManifestProjection, clock: Clock
    ) -> None:
        self._workspaces = workspaces
        self._backups = backups
        self._projection = projection
        self._clock = clock

    async def backup(self, workspace: str, backup: str) -> BackupCopy:
        """Make a consistent copy of a workspace while it is in use; raises NotFound, AlreadyExists, InvalidName."""
        lower_component(backup, "backup")
        source = await self._workspaces.open(workspace)
        now = self._clock()
        path, size_bytes = await self._backups.make(source, backup, now)
        return BackupCopy(path, size_bytes, now)

    async def restore(self, backup: str, workspace: str) -> Manifest:
        """Make a new workspace from a copy; raises NotFound, AlreadyExists, PreconditionFailed, InvalidName."""
        lower_component(backup, "backup")
        lower_component(workspace, "workspace")
        folder = await self._backups.restore(backup, workspace)
        await self._projection.refresh(folder)
        return await folder.ledger.read(read_manifest)
