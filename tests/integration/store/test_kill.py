"""`kill -9` of the store under load loses no acknowledged row (STO-14)."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

import grpc
import pytest
from videotree.store.v1 import run_service_pb2

from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.testing import free_port
from tests.builders.store_requests import WORKSPACE, make_workspace, prediction, trace
from tests.fakes.store_client import StoreClient, disk_store_parts, serving, store_client

ROOT = Path(__file__).resolve().parents[3]
WRITERS = 16
# `VIDEOTREE_KILLS=20` repeats it more often.
KILLS = int(os.environ.get("VIDEOTREE_KILLS", "3"))


async def _started(data: Path, port: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "services.store.main", "--port", str(port), "--metrics-port", "0"),
        env={**os.environ, "VIDEOTREE_DATA": str(data), "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=data,
    )


async def _write(client: StoreClient, run_id: str, acknowledged: set[tuple[str, str]]) -> None:
    number = 0
    while True:
        question_id = f"q{number:05}"
        request = run_service_pb2.AppendPredictionsRequest(
            workspace=WORKSPACE,
            predictions=[prediction(run_id, question_id)],
            traces=[trace(run_id, question_id, step) for step in range(2)],
        )
        try:
            await client.runs.AppendPredictions(request)
        except grpc.aio.AioRpcError:
            return
        acknowledged.add((run_id, question_id))
        number += 1


@pytest.mark.slow
@pytest.mark.timeout(60 + 20 * KILLS)
async def test_sto_14_kill_9_during_16_writers_loses_no_acknowledged_row(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
    acknowledged: set[tuple[str, str]] = set()
    rng = random.Random(7)
    for kill in range(KILLS):
        port = free_port()
        process = await _started(tmp_path, port)
        try:
            async with open_channel(f"127.0.0.1:{port}", ClientCredentials()) as channel:
                await asyncio.wait_for(_ready(channel), 40)
                client = store_client(channel)
                before = len(acknowledged)
                writers = [
                    asyncio.create_task(_write(client, f"k{kill}_w{writer}", acknowledged)) for writer in range(WRITERS)
                ]
                await asyncio.sleep(0.2 + rng.random())
                process.send_signal(signal.SIGKILL)
                await asyncio.gather(*writers)
                assert len(acknowledged) > before
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
    async with serving(await disk_store_parts(tmp_path)) as client:
        found: dict[tuple[str, str], int] = {}
        for run_id in sorted({run_id for run_id, _ in acknowledged}):
            listing = run_service_pb2.StreamPredictionsRequest(workspace=WORKSPACE, run_id=run_id, brief=True)
            async for message in client.runs.StreamPredictions(listing):
                for each in message.predictions:
                    found[(each.run_id, each.question_id)] = found.get((each.run_id, each.question_id), 0) + 1
        assert acknowledged <= set(found)
        assert set(found.values()) == {1}
        for run_id in ("k0_w0", f"k{KILLS - 1}_w15"):
            traces = run_service_pb2.ListTracesRequest(workspace=WORKSPACE, run_id=run_id, page_size=10_000)
            count = len((await client.runs.ListTraces(traces)).traces)
            assert count == 2 * sum(each == run_id for each, _ in found)
    print(f"{KILLS} kills, {len(acknowledged)} acknowledged rows, none lost")  # noqa: T201


async def _ready(channel: grpc.aio.Channel) -> None:
    while True:
        try:
            await _ask(channel)
        except grpc.aio.AioRpcError:
            await asyncio.sleep(0.1)
        else:
            return


async def _ask(channel: grpc.aio.Channel) -> None:
    """Asks the store for something small, to see whether it serves."""
    listing = run_service_pb2.ListRunsRequest(workspace=WORKSPACE)
    await store_client(channel).runs.ListRuns(listing)
