"""The workspaces as requests name them: every name is checked here, before it can become a path (QUA-14)."""

from __future__ import annotations

from services.store.domain.names import lower_component
from services.store.use_cases.ports import Fill, LedgerFolder, LedgerFolders


class NamedWorkspaces:
    """The port LedgerFolders in front of another one; raises InvalidName for what can't be a workspace's name."""

    def __init__(self, workspaces: LedgerFolders) -> None:
        self._workspaces = workspaces

    async def open(self, name: str) -> LedgerFolder:
        """Return one; raises NotFound, InvalidName."""
        return await self._workspaces.open(lower_component(name, "workspace"))

    async def names(self) -> list[str]:
        """Return all names in ascending order."""
        return await self._workspaces.names()

    async def create(self, name: str, fill: Fill, *, replace: bool) -> LedgerFolder:
        """Make one that appears whole, or not at all; raises AlreadyExists, InvalidName."""
        return await self._workspaces.create(lower_component(name, "name"), fill, replace=replace)
