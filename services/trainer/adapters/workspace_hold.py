"""Holding a workspace for one training: a stream that stays open as long as this process lives."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from videotree.store.v1 import training_service_pb2 as pb
from videotree.store.v1 import training_service_pb2_grpc

from services.trainer.adapters.calls import Caller
from services.trainer.domain.errors import ServiceFailed

T = TypeVar("T")

_POLL_SECONDS = 0.25
_RELEASE_SECONDS = 3.0
"""So long the store may take to notice that a killed trainer is gone."""


class WorkspaceHold:
    """One training's hold on a workspace."""

    def __init__(
        self, stub: training_service_pb2_grpc.TrainingServiceStub, caller: Caller, workspace: str, run_id: str
    ) -> None:
        self._stub, self._caller = stub, caller
        holder = f"trainer {os.getpid()} on {socket.gethostname()}"
        self._request = pb.HoldWorkspaceRequest(workspace=workspace, run_id=run_id, holder=holder)

    async def during(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, done while the workspace is held. Raises ServiceFailed when it can't be held."""
        held = await self._taken()
        task = asyncio.ensure_future(work())
        keeping = asyncio.ensure_future(self._kept(held))
        try:
            await asyncio.wait({task, keeping}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                keeping.result()
            return await task
        except asyncio.CancelledError:
            task.cancel()
            return await task  # the work's own word on how it was interrupted
        finally:
            task.cancel()
            keeping.cancel()
            await asyncio.gather(task, keeping, return_exceptions=True)

    async def _taken(self) -> AsyncIterator[pb.HoldWorkspaceResponse]:
        deadline = asyncio.get_running_loop().time() + _RELEASE_SECONDS
        while True:
            stream = self._caller.stream(self._stub.HoldWorkspace(self._request))
            try:
                await anext(stream)
                return stream
            except ServiceFailed as failure:
                late = asyncio.get_running_loop().time() > deadline
                if late or failure.code != "FAILED_PRECONDITION":
                    raise
            await asyncio.sleep(_POLL_SECONDS)

    async def _kept(self, held: AsyncIterator[pb.HoldWorkspaceResponse]) -> None:
        """Returns never: a store that was started again is asked anew. Raises ServiceFailed when another was faster."""
        while True:
            with contextlib.suppress(ServiceFailed):
                async for _ in held:
                    pass
            held = await self._taken_again()

    async def _taken_again(self) -> AsyncIterator[pb.HoldWorkspaceResponse]:
        while True:
            try:
                return await self._taken()
            except ServiceFailed as failure:
                if failure.code != "UNAVAILABLE":
                    raise
            await asyncio.sleep(_POLL_SECONDS)
