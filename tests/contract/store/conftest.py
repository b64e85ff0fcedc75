"""Each contract runs on the in-memory store and on the real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.in_memory_store import in_memory_store_parts
from tests.fakes.store_client import StoreClient, disk_store_parts, serving


@pytest.fixture(params=["memory", "disk"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreClient]:
    """A client of an empty store."""
    parts = in_memory_store_parts() if request.param == "memory" else await disk_store_parts(tmp_path / "data")
    async with serving(parts) as connected:
        yield connected
