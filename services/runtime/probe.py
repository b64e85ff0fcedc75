"""Asks a server for its health: `python -m services.runtime.probe HOST:PORT` exits 0 when it serves, 1 otherwise.

An `http://` address is asked with GET and serves when it answers 200.
"""

from __future__ import annotations

import asyncio
import http.client
import sys
import urllib.request
from http import HTTPStatus

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.runtime.channels import open_channel
from services.runtime.config import ConfigError

_TIMEOUT_SECONDS = 3.0


async def probe(address: str, timeout_seconds: float = _TIMEOUT_SECONDS) -> str:
    """The health of the server at `address`: `SERVING`, `NOT_SERVING`, or the status of a call that failed."""
    if address.startswith("http://"):
        return await asyncio.to_thread(_probe_http, address, timeout_seconds)
    async with open_channel(address) as channel:
        try:
            check = health_pb2_grpc.HealthStub(channel).Check  # type: ignore[attr-defined]
            answer = await check(health_pb2.HealthCheckRequest(), timeout=timeout_seconds)
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details()}"
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


def _probe_http(address: str, timeout_seconds: float) -> str:
    try:
        with urllib.request.urlopen(address, timeout=timeout_seconds) as answer:  # noqa: S310 - http:// only, see probe
            return "SERVING" if answer.status == HTTPStatus.OK else f"HTTP {answer.status}"
    except (OSError, http.client.HTTPException) as error:
        return str(error)


def main(arguments: list[str]) -> int:
    """Prints the health and returns the exit code; 2 on wrong use."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m services.runtime.probe HOST:PORT | http://HOST:PORT/PATH\n")
        return 2
    try:
        health = asyncio.run(probe(arguments[0]))
    except ConfigError as error:
        health = str(error)
    sys.stdout.write(health + "\n")
    return 0 if health == "SERVING" else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
