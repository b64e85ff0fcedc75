"""The trainer's hold on a workspace over gRPC: two trainings at once, Ctrl-C, a store that starts again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from videotree.store.v1 import training_service_pb2_grpc

from services.runtime.config import ServingConfig
from services.runtime.serving import ServiceParts
from services.runtime.testing import free_port, local_server
from services.trainer.adapters.calls import Caller
from services.trainer.adapters.workspace_hold import WorkspaceHold
from services.trainer.domain.errors import ServiceFailed
from tests.builders.store_requests import WORKSPACE, make_workspace
from tests.fakes.in_memory_store import in_memory_store_parts
from tests.fakes.store_client import disk_store_parts, store_client


def hold(channel: grpc.aio.Channel, run_id: str) -> WorkspaceHold:
    stub = training_service_pb2_grpc.TrainingServiceStub(channel)
    return WorkspaceHold(stub, Caller("store", "here", 5.0), WORKSPACE, run_id)


async def served(
    port: int, parts: ServiceParts, inside: Callable[[grpc.aio.Channel], Awaitable[Any]], *, again: bool = False
) -> None:
    config = ServingConfig(port=port, metrics_port=0, grace_seconds=0.1)
    async with local_server("store", parts, config), grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        if not again:
            await make_workspace(store_client(channel))
        await inside(channel)


async def test_a_second_training_is_refused_by_name_and_the_first_goes_on() -> None:
    async def inside(channel: grpc.aio.Channel) -> None:
        release = asyncio.Event()
        started = asyncio.Event()

        async def first_work() -> str:
            started.set()
            await release.wait()
            return "done"

        async def second_work() -> str:
            raise AssertionError("two trainings at once")

        first = asyncio.ensure_future(hold(channel, "a").during(first_work))
        await started.wait()
        with pytest.raises(ServiceFailed, match="works on run a; stop that training") as refused:
            await hold(channel, "b").during(second_work)
        assert refused.value.code == "FAILED_PRECONDITION"
        release.set()
        assert await first == "done"
        assert await hold(channel, "b").during(lambda: asyncio.sleep(0, "free")) == "free"

    await served(free_port(), in_memory_store_parts(), inside)


async def test_an_interrupted_work_has_the_last_word_and_the_workspace_is_free() -> None:
    async def inside(channel: grpc.aio.Channel) -> None:
        started = asyncio.Event()

        async def work() -> None:
            try:
                started.set()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                raise RuntimeError("go on with this command") from None

        task = asyncio.ensure_future(hold(channel, "a").during(work))
        await started.wait()
        task.cancel()
        with pytest.raises(RuntimeError, match="go on with"):
            await task
        assert await hold(channel, "b").during(lambda: asyncio.sleep(0, "free")) == "free"

    await served(free_port(), in_memory_store_parts(), inside)


async def test_a_store_that_starts_again_is_held_again_before_anyone_else_notices(tmp_path: Path) -> None:
    port, release, started = free_port(), asyncio.Event(), asyncio.Event()
    running: list[asyncio.Future[None]] = []

    async def work() -> None:
        started.set()
        await release.wait()

    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as own:

        async def begin(_: grpc.aio.Channel) -> None:
            running.append(asyncio.ensure_future(hold(own, "a").during(work)))
            await started.wait()

        async def later(channel: grpc.aio.Channel) -> None:
            await asyncio.sleep(4)
            with pytest.raises(ServiceFailed, match="works on run a"):
                await hold(channel, "b").during(lambda: asyncio.sleep(0))
            release.set()
            await running[0]

        await served(port, await disk_store_parts(tmp_path), begin)
        await served(port, await disk_store_parts(tmp_path), later, again=True)
