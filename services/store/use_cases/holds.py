"""One training at a time on a workspace: two would clear and publish under each other's hands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.store.domain.errors import PreconditionFailed
from services.store.domain.names import run_name
from services.store.use_cases.ports import LedgerFolders


class Holds:
    """Who trains on which workspace; known to this process alone, so a store that starts again holds none."""

    def __init__(self, workspaces: LedgerFolders) -> None:
        self._workspaces = workspaces
        self._holders: dict[str, str] = {}

    @asynccontextmanager
    async def hold(self, workspace: str, run_id: str, holder: str) -> AsyncIterator[None]:
        """The workspace is held inside. Raises PreconditionFailed naming who holds it, NotFound, InvalidName."""
        run_name(run_id, "run_id")
        await self._workspaces.open(workspace)
        if workspace in self._holders:
            raise PreconditionFailed(
                f"workspace {workspace!r} is in use: {self._holders[workspace]}; stop that training or wait for its end"
            )
        self._holders[workspace] = f"{holder[:200] or 'another trainer'} works on run {run_id}"
        try:
            yield
        finally:
            del self._holders[workspace]
