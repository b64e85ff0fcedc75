"""CLI-5: a bearer token and mutual TLS on every service, health open, a warning where neither guards an open port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
import structlog
from google.protobuf.wrappers_pb2 import StringValue
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.config import ConfigError
from services.runtime.serving import RunningServer, warn_when_open_to_others
from services.runtime.status import error_info
from services.runtime.testing import local_config, local_server
from services.runtime.transport import tls_files
from tests.integration.runtime.certificates import Certificate, authority, issued
from tests.integration.runtime.echo import EchoClient, EchoConfig, parts

TOKEN = "the-token-of-this-test"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n", encoding="utf-8")
    return path


@pytest.fixture
async def guarded(token_file: Path) -> AsyncIterator[RunningServer]:
    async with local_server("test", parts(), local_config(token_file)) as running:
        yield running


async def _answer(address: str, credentials: ClientCredentials, metadata: tuple[tuple[str, str], ...] = ()) -> str:
    async with open_channel(address, credentials) as channel:
        answer = await EchoClient(channel).say(StringValue(value="hello"), metadata=metadata, timeout=5)
        return answer.value


async def test_cli_5_the_right_token_opens(guarded: RunningServer, token_file: Path) -> None:
    assert await _answer(f"127.0.0.1:{guarded.port}", ClientCredentials(token_file=token_file)) == "hello"


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ((), "TOKEN_MISSING"),
        ((("authorization", f"Bearer {TOKEN}x"),), "TOKEN_WRONG"),
        ((("authorization", TOKEN),), "TOKEN_WRONG"),
        ((("authorization", "Bearer "),), "TOKEN_WRONG"),
    ],
)
async def test_cli_5_no_token_or_another_is_refused(
    guarded: RunningServer, metadata: tuple[tuple[str, str], ...], reason: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await _answer(f"127.0.0.1:{guarded.port}", ClientCredentials(), metadata)
    info = error_info(caught.value)
    assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
    assert info is not None
    assert info.reason == reason
    assert TOKEN not in str(caught.value)


async def test_cli_5_streams_ask_for_the_token_too(guarded: RunningServer) -> None:
    async with open_channel(f"127.0.0.1:{guarded.port}", ClientCredentials()) as channel:
        client = EchoClient(channel)
        for call in (client.say_twice(StringValue(value="x")), client.say_each(iter([StringValue(value="x")]))):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                assert [answer async for answer in call] == []
            assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED


async def test_cli_5_health_stays_open(guarded: RunningServer) -> None:
    async with open_channel(f"127.0.0.1:{guarded.port}", ClientCredentials()) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service="videotree.test.Echo"))
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_cli_5_an_empty_token_file_stops_the_start(tmp_path: Path) -> None:
    empty = tmp_path / "token"
    empty.write_text("\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"token_file: .* is empty"):
        async with local_server("test", parts(), local_config(empty)):
            pass


@pytest.fixture
def ca(tmp_path: Path) -> Certificate:
    return authority(tmp_path, "ca")


def _credentials(own: Certificate, ca: Certificate) -> ClientCredentials:
    return ClientCredentials(tls_cert_file=own.cert_file, tls_key_file=own.key_file, tls_ca_file=ca.cert_file)


def _tls_config(own: Certificate, ca: Certificate) -> EchoConfig:
    return EchoConfig(tls_cert_file=own.cert_file, tls_key_file=own.key_file, tls_ca_file=ca.cert_file)


async def test_cli_5_mutual_tls_lets_in_who_shows_a_certificate_of_the_ca(tmp_path: Path, ca: Certificate) -> None:
    server, client = issued(tmp_path, "server", ca), issued(tmp_path, "client", ca)
    stranger = issued(tmp_path, "stranger", authority(tmp_path, "other-ca"))
    async with local_server("test", parts(), _tls_config(server, ca)) as running:
        address = f"127.0.0.1:{running.port}"
        assert await _answer(address, _credentials(client, ca)) == "hello"
        for refused in (ClientCredentials(), _credentials(stranger, ca)):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await _answer(address, refused)
            assert caught.value.code() == grpc.StatusCode.UNAVAILABLE


def test_cli_5_half_a_tls_configuration_is_an_error(tmp_path: Path, ca: Certificate) -> None:
    with pytest.raises(ConfigError, match="VIDEOTREE_TLS_KEY_FILE"):
        tls_files(ca.cert_file, None, ca.cert_file)
    with pytest.raises(ConfigError, match="absent"):
        tls_files(ca.cert_file, tmp_path / "absent", ca.cert_file)


@pytest.mark.parametrize(
    ("host", "guarded_by_token", "warned"),
    [
        ("127.0.0.1", False, False),
        ("localhost", False, False),
        ("::1", False, False),
        ("0.0.0.0", False, True),
        ("store", False, True),
        ("0.0.0.0", True, False),
    ],
)
def test_cli_5_listening_beyond_loopback_without_a_guard_is_warned_of(
    token_file: Path, host: str, guarded_by_token: bool, warned: bool
) -> None:
    with structlog.testing.capture_logs() as logged:
        warn_when_open_to_others(EchoConfig(host=host, token_file=token_file if guarded_by_token else None))
    assert [line["log_level"] for line in logged] == (["warning"] if warned else [])
