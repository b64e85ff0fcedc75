"""The life of a service process: build, serve, stop."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import grpc
import uvloop
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from services.runtime.authentication import TokenCheck
from services.runtime.config import ConfigError, ServingConfig, secret_from_file
from services.runtime.interceptors import CallInterceptor
from services.runtime.logging import configure_logging, get_logger
from services.runtime.metrics import serve_metrics
from services.runtime.status import StatusRule
from services.runtime.transport import server_options, tls_files

_log = get_logger(__name__)


@dataclass(frozen=True)
class ServiceParts:
    """What a service brings to its server.

    `register` adds its servicers, `service_names` are their full names (for health and reflection), `status_rules` its
    error table; `close` releases its adapters and is awaited once, after the last call ended.
    """

    register: Callable[[grpc.aio.Server], None]
    service_names: tuple[str, ...]
    status_rules: Mapping[type[Exception], StatusRule]
    close: Callable[[], Awaitable[None]]


class RunningServer:
    """A server that answers calls; `port` is the one it listens on."""

    def __init__(
        self,
        server: grpc.aio.Server,
        port: int,
        health_servicer: health.aio.HealthServicer,
        stop_metrics: Callable[[], None] | None,
    ) -> None:
        self.port = port
        self._server = server
        self._health = health_servicer
        self._stop_metrics = stop_metrics

    async def stop(self, grace: float) -> None:
        """Says NOT_SERVING, lets open calls end within `grace` seconds, cancels the rest. The parts stay open."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace)
        if self._stop_metrics is not None:
            self._stop_metrics()


async def start_server(name: str, config: ServingConfig, parts: ServiceParts) -> RunningServer:
    """A running server with health, reflection and metrics around the service's own servicers.

    Raises ConfigError when a port is taken or a TLS or token file can't be read.
    """
    token = None if config.token_file is None else secret_from_file(config.token_file, "token_file")
    check = None if token is None else TokenCheck(token.get_secret_value())
    server = grpc.aio.server(
        interceptors=[CallInterceptor(f"videotree.{name}", parts.status_rules, check)],
        options=server_options(config.max_message_mib),
    )
    parts.register(server)
    health_servicer = await _add_health_and_reflection(server, parts.service_names)
    port = _bind(server, config)
    stop_metrics = _start_metrics(config)
    await server.start()
    return RunningServer(server, port, health_servicer, stop_metrics)


def run_service(name: str, config: ServingConfig, build: Callable[[], Awaitable[ServiceParts]]) -> int:
    """Serves until SIGTERM or SIGINT and returns the exit code: 0 after a clean stop, 1 when it couldn't start."""
    configure_logging(name, config.log_format, config.log_level)
    return uvloop.run(_serve_until_stopped(name, config, build))


async def _serve_until_stopped(name: str, config: ServingConfig, build: Callable[[], Awaitable[ServiceParts]]) -> int:
    stopping = _stop_on_signals()
    try:
        refuse_taken_port(config.host, config.port)
        parts = await _unless(stopping, build())
    except ConfigError as error:
        _log.error("can't start", reason=str(error))
        return 1
    except Exception:
        _log.exception("can't start")
        return 1
    if parts is None:
        return 0
    try:
        return await _serve(name, config, parts, stopping)
    finally:
        await parts.close()


async def _serve(name: str, config: ServingConfig, parts: ServiceParts, stopping: asyncio.Event) -> int:
    try:
        running = await start_server(name, config, parts)
    except ConfigError as error:
        _log.error("can't start", reason=str(error))
        return 1
    warn_when_open_to_others(config)
    _log.info("serving", host=config.host, port=running.port, metrics_port=config.metrics_port)
    await stopping.wait()
    _log.info("stopping", grace_seconds=config.grace_seconds)
    await running.stop(config.grace_seconds)
    _log.info("stopped")
    return 0


async def _unless(stopping: asyncio.Event, building: Awaitable[ServiceParts]) -> ServiceParts | None:
    """What was built, or None when a signal came first (the building is cancelled then)."""
    task = asyncio.ensure_future(building)
    stop = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if task.done():
        return task.result()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await task
    return None


def _stop_on_signals() -> asyncio.Event:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return stopping


async def _add_health_and_reflection(server: grpc.aio.Server, names: tuple[str, ...]) -> health.aio.HealthServicer:
    servicer = health.aio.HealthServicer()
    for name in names:
        await servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    reflection.enable_server_reflection((*names, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    return servicer


def _bind(server: grpc.aio.Server, config: ServingConfig) -> int:
    tls = tls_files(config.tls_cert_file, config.tls_key_file, config.tls_ca_file)
    address = f"{_bracketed(config.host)}:{config.port}"
    try:
        return server.add_insecure_port(address) if tls is None else server.add_secure_port(address, tls.server())
    except RuntimeError as error:
        raise ConfigError(f"can't listen on {address}: {error}; set another host or port") from error


def _start_metrics(config: ServingConfig) -> Callable[[], None] | None:
    if config.metrics_port == 0:
        return None
    try:
        return serve_metrics(config.host, config.metrics_port)
    except OSError as error:
        raise ConfigError(
            f"metrics_port {config.metrics_port} on {config.host} can't be used ({error.strerror or error}); "
            "set another metrics_port, or 0 for none"
        ) from error


def refuse_taken_port(host: str, port: int) -> None:
    """Returns when `port` can be listened on (0 always can); raises ConfigError naming it otherwise."""
    if port == 0:
        return
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        raise ConfigError(
            f"port {port} on {host} can't be used ({error.strerror or error}); "
            "stop what listens there or set another port"
        ) from error


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warn_when_open_to_others(config: ServingConfig) -> None:
    """Logs a warning when others than this machine reach the service and neither a token nor TLS guards it."""
    if is_loopback(config.host) or config.tls_cert_file is not None or config.token_file is not None:
        return
    _log.warning(
        "anyone who reaches this host may call this service",
        host=config.host,
        mend="set VIDEOTREE_TOKEN_FILE or VIDEOTREE_TLS_*, or listen on 127.0.0.1",
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
