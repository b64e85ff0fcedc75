"""One training at a time on a workspace (TRN-11), on every store."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
from grpc import StatusCode
from videotree.store.v1 import training_service_pb2 as pb

from tests.builders.store_requests import WORKSPACE, make_workspace
from tests.fakes.store_client import StoreClient


def _hold(client: StoreClient, workspace: str = WORKSPACE, run_id: str = "r", holder: str = "trainer 7 on a") -> Any:
    return client.training.HoldWorkspace(
        pb.HoldWorkspaceRequest(workspace=workspace, run_id=run_id, holder=holder), timeout=20
    )


async def _refusal(call: Any) -> tuple[StatusCode, str]:
    try:
        await call.read()
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""
    raise AssertionError("it was not refused")


async def test_a_workspace_is_held_by_one_training_and_free_again_when_that_is_gone(client: StoreClient) -> None:
    await make_workspace(client)
    first = _hold(client)
    assert await first.read() == pb.HoldWorkspaceResponse()
    code, words = await _refusal(_hold(client, run_id="other"))
    assert code is StatusCode.FAILED_PRECONDITION
    assert "trainer 7 on a works on run r" in words
    assert "stop that training or wait for its end" in words
    first.cancel()
    for _ in range(100):
        second = _hold(client, run_id="other")
        try:
            assert await second.read() == pb.HoldWorkspaceResponse()
        except grpc.aio.AioRpcError:
            await asyncio.sleep(0.05)
        else:
            second.cancel()
            return
    raise AssertionError("the workspace stayed held")


async def test_a_workspace_that_is_not_there_or_a_bad_run_id_is_not_held(client: StoreClient) -> None:
    await make_workspace(client)
    assert (await _refusal(_hold(client, workspace="nowhere")))[0] is StatusCode.NOT_FOUND
    assert (await _refusal(_hold(client, workspace="../x")))[0] is StatusCode.INVALID_ARGUMENT
    assert (await _refusal(_hold(client, run_id="")))[0] is StatusCode.INVALID_ARGUMENT
