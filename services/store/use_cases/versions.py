"""Versions of skills and prompts: publish, read, list, compare (STO-3)."""

from __future__ import annotations

import asyncio

from services.store.domain.version_content import checked_kind, unified_diff
from services.store.use_cases import publish
from services.store.use_cases.paging import Page, PageRequest, row_page
from services.store.use_cases.ports import Clock, LedgerFolders, Query, Row


class Versions:
    """The versions of all workspaces."""

    def __init__(self, workspaces: LedgerFolders, clock: Clock) -> None:
        self._workspaces = workspaces
        self._clock = clock

    async def publish(self, workspace: str, change: publish.VersionChange) -> tuple[Row, bool]:
        """Return the new version's row and True, or the parent's row and False when the content is the same."""
        folder = await self._workspaces.open(workspace)
        now = self._clock()
        return await folder.ledger.write(lambda transaction: publish.publish(transaction, folder.files, change, now))

    async def get(self, workspace: str, kind: str, version: str) -> tuple[Row, dict[str, str]]:
        """Return a version's row and its files' texts; raises NotFound."""
        folder = await self._workspaces.open(workspace)
        row = await folder.ledger.read(lambda reader: publish.version_row(reader, kind, version, "version"))
        return row, await asyncio.to_thread(publish.version_texts, folder.files, row)

    async def page(self, workspace: str, kind: str, request: PageRequest) -> Page[Row]:
        """Return versions of one kind in the order they were published."""
        folder = await self._workspaces.open(workspace)
        return await row_page(folder.ledger, Query("versions", equal={"kind": checked_kind(kind)}), request)

    async def diff(self, workspace: str, kind: str, older: str, newer: str) -> str:
        """Return a unified diff over all files; empty when the versions are equal."""
        (old_row, old), (new_row, new) = (
            await self.get(workspace, kind, older),
            await self.get(workspace, kind, newer),
        )
        return unified_diff(old_row["version"], old, new_row["version"], new)
