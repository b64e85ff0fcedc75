"""One way to call a service: a deadline, and every failure as a ServiceFailed that a person can read."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar, cast

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from services.trainer.domain.errors import ServiceFailed

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")


class Caller:
    """Calls the methods of one service; `timeout_seconds` bounds each unary call."""

    def __init__(self, service: str, address: str, timeout_seconds: float) -> None:
        self.service = service
        self.address = address
        self.timeout_seconds = timeout_seconds

    async def unary(
        self, method: grpc.aio.UnaryUnaryMultiCallable[Q, A], request: Q, timeout_seconds: float | None = None
    ) -> A:
        """The answer to `request`. Raises ServiceFailed."""
        try:
            return await method(request, timeout=timeout_seconds or self.timeout_seconds)
        except grpc.aio.AioRpcError as error:
            raise self.failure(error) from error

    async def stream(self, call: AsyncIterable[T]) -> AsyncIterator[T]:
        """The messages of a server stream. Raises ServiceFailed; leaving it early cancels the call."""
        try:
            async for message in call:
                yield message
        except grpc.aio.AioRpcError as error:
            raise self.failure(error) from error
        finally:
            cancel: Callable[[], object] | None = getattr(call, "cancel", None)
            if cancel is not None:
                cancel()

    async def pages(self, fetch: Callable[[str], Awaitable[T]]) -> AsyncIterator[T]:
        """All pages of a list, `fetch` being called with each page token."""
        token = ""
        while True:
            page: Any = await fetch(token)
            yield page
            token = page.next_page_token
            if not token:
                return

    def failure(self, error: grpc.aio.AioRpcError) -> ServiceFailed:
        """The error of a call in the trainer's words."""
        code, details = error.code(), error.details() or ""
        if code == grpc.StatusCode.UNAVAILABLE and not _reason(error):
            details = f"nothing answers at {self.address}; start it with `videotree up`, or see `videotree doctor`"
        return ServiceFailed(self.service, code.name, details, _reason(error))


def _reason(error: grpc.aio.AioRpcError) -> str:
    status = rpc_status.from_call(cast("grpc.Call", error))
    for detail in status.details if status is not None else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return str(info.reason)
    return ""
