"""Channels to other services; the token, the request id and the deadline of the current request go along."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
from pydantic import Field

from services.runtime.authentication import AUTHORIZATION_KEY, bearer
from services.runtime.config import SHARED_SECTION, Section, load_section, secret_from_file
from services.runtime.request_context import REQUEST_ID_KEY, current_request_id, remaining_seconds
from services.runtime.transport import shared_options, tls_files

_MAX_MESSAGE_MIB = 64


class ClientCredentials(Section):
    """How this process proves itself to services: keys of `[runtime]`, or the variables of the same meaning."""

    tls_cert_file: Path | None = Field(None, validation_alias="VIDEOTREE_TLS_CERT_FILE")
    tls_key_file: Path | None = Field(None, validation_alias="VIDEOTREE_TLS_KEY_FILE")
    tls_ca_file: Path | None = Field(None, validation_alias="VIDEOTREE_TLS_CA_FILE")
    token_file: Path | None = Field(None, validation_alias="VIDEOTREE_TOKEN_FILE")


def open_channel(address: str, credentials: ClientCredentials | None = None) -> grpc.aio.Channel:
    """A channel to `address` (`host:port`), connected on first use; close it when done.

    Without `credentials` they are read from the configuration. Raises ConfigError when a named file can't be read.
    """
    known = credentials if credentials is not None else load_section(ClientCredentials, SHARED_SECTION)
    tls = tls_files(known.tls_cert_file, known.tls_key_file, known.tls_ca_file)
    options = shared_options(_MAX_MESSAGE_MIB)
    plain = (
        grpc.aio.insecure_channel(address, options)
        if tls is None
        else grpc.aio.secure_channel(address, tls.client(), options)
    )
    token = None if known.token_file is None else secret_from_file(known.token_file, "VIDEOTREE_TOKEN_FILE")
    return _ContextChannel(plain, None if token is None else token.get_secret_value())


class _ContextChannel(grpc.aio.Channel):
    """A channel whose calls carry the token, the current request's id and its deadline.

    It wraps the callables, not the calls: grpc.aio's own client interceptors put a task around each call.
    """

    def __init__(self, channel: grpc.aio.Channel, token: str | None) -> None:
        self._channel = channel
        self._fixed: tuple[tuple[str, str], ...] = () if token is None else ((AUTHORIZATION_KEY, bearer(token)),)

    def unary_unary(self, *args: Any, **options: Any) -> Any:
        """A callable for one request and one answer."""
        return self._with_context(self._channel.unary_unary(*args, **options))

    def unary_stream(self, *args: Any, **options: Any) -> Any:
        """A callable for one request and a stream of answers."""
        return self._with_context(self._channel.unary_stream(*args, **options))

    def stream_unary(self, *args: Any, **options: Any) -> Any:
        """A callable for a stream of requests and one answer."""
        return self._with_context(self._channel.stream_unary(*args, **options))

    def stream_stream(self, *args: Any, **options: Any) -> Any:
        """A callable for a stream of requests and a stream of answers."""
        return self._with_context(self._channel.stream_stream(*args, **options))

    def _with_context(self, call: Callable[..., Any]) -> Callable[..., Any]:
        fixed = self._fixed

        def start(request: Any = None, *, timeout: float | None = None, metadata: Any = None, **options: Any) -> Any:
            request_id = current_request_id()
            own = (*fixed, (REQUEST_ID_KEY, request_id)) if request_id else fixed
            return call(request, timeout=_sooner(timeout), metadata=(*(metadata or ()), *own), **options)

        return start

    async def __aenter__(self) -> Self:
        await self._channel.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Closes the connection; calls still open are cancelled after `grace` seconds."""
        await self._channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """The state of the connection."""
        return self._channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Returns when the state is another than `last_observed_state`."""
        await self._channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Returns when the connection stands."""
        await self._channel.channel_ready()


def _sooner(timeout: float | None) -> float | None:
    left = remaining_seconds()
    if left is None:
        return timeout
    return left if timeout is None else min(timeout, left)
