"""The real store on a data root, called at its servicers without a socket: its process can be forked and killed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import grpc
from google.protobuf.message import Message

from services.store import main
from services.store.adapters import atomic_files
from services.store.adapters.file_operations import FileOperations, SystemFileOperations
from services.store.config import StoreConfig

NOW = "2026-01-02T03:04:05.000000Z"


class OpenStore:
    """Requests by the name of their method. A refusal is raised as the store's own error."""

    def __init__(self, methods: Mapping[str, Any]) -> None:
        self._methods = methods

    async def call(self, method: str, request: Message) -> Any:
        """The answer, or the list of a stream's answers."""
        handler = self._methods[method]
        if handler.response_streaming:
            return [answer async for answer in handler.unary_stream(request, None)]
        return await handler.unary_unary(request, None)


class _Methods:
    """Stands where a server does, and keeps what is registered with it."""

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}

    def add_registered_method_handlers(self, _service: str, handlers: Mapping[str, Any]) -> None:
        self.by_name.update(handlers)

    def add_generic_rpc_handlers(self, _handlers: object) -> None:
        """The same handlers in another form."""


@contextlib.asynccontextmanager
async def open_store(root: Path, operations: FileOperations | None = None) -> AsyncIterator[OpenStore]:
    """The store as its own `build` makes it, at a clock that stands still, with these file operations everywhere."""
    chosen = operations or SystemFileOperations()
    with (
        patch.object(atomic_files, "SystemFileOperations", lambda: chosen),
        patch.object(main, "utc_now", lambda: NOW),
    ):
        parts = await main.build(StoreConfig(port=0, metrics_port=0, data=root))
        methods = _Methods()
        try:
            parts.register(cast(grpc.aio.Server, methods))
            yield OpenStore(methods.by_name)
        finally:
            await parts.close()


async def call_once(root: Path, call: tuple[str, Message]) -> Any:
    """The answer to one request, by a store that is opened for it."""
    async with open_store(root) as store:
        return await store.call(*call)
