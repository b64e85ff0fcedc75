"""The store as a process (CLI-4, QUA-5): it stops when asked, and is small when idle."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from tests.builders.store_requests import append, listed, make_workspace, prediction
from tests.fakes.store_client import disk_store_parts, serving
from tests.fakes.store_process import store_process


async def test_cli_4_sigterm_ends_it_with_code_0_and_all_writes_kept(tmp_path: Path) -> None:
    async with store_process(tmp_path) as store:
        await make_workspace(store.client)
        await asyncio.gather(*(append(store.client, prediction("r", f"q{number}")) for number in range(20)))
        store.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(store.process.wait(), 30) == 0
    async with serving(await disk_store_parts(tmp_path)) as client:
        assert len(await listed(client)) == 20


async def test_qua_5_it_is_below_120_mib_when_idle(tmp_path: Path) -> None:
    async with store_process(tmp_path) as store:
        await make_workspace(store.client)
        assert store.resident_mib < 120
