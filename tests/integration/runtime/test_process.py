"""CLI-4: a real child process serves, and stops cleanly on a signal with calls open."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.probe import main, probe
from services.runtime.testing import free_port
from tests.integration.runtime.echo import SERVICE, EchoClient

ROOT = Path(__file__).parents[3]


@dataclass
class Child:
    process: asyncio.subprocess.Process
    port: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def ended(self, sent: signal.Signals) -> tuple[int, str, list[dict[str, object]]]:
        """Exit code, standard output and log lines after the signal."""
        self.process.send_signal(sent)
        out, err = await asyncio.wait_for(self.process.communicate(), 10)
        assert self.process.returncode is not None
        return self.process.returncode, out.decode(), [json.loads(line) for line in err.splitlines()]


async def _start(*arguments: str) -> asyncio.subprocess.Process:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}", "VIDEOTREE_CONFIG": os.devnull}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.integration.runtime.echo",
        *arguments,
        cwd=ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@asynccontextmanager
async def _serving(*arguments: str) -> AsyncIterator[Child]:
    process = await _start(*arguments)
    try:
        line = json.loads(await asyncio.wait_for(process.stderr.readline(), 20))
        assert line["event"] == "serving"
        yield Child(process, line["port"])
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
async def test_cli_4_a_signal_with_an_open_stream_ends_the_process_cleanly(sent: signal.Signals) -> None:
    async with _serving() as child, open_channel(child.address, ClientCredentials()) as channel:
        stream = EchoClient(channel).say_twice(StringValue(value="hang"))
        assert (await stream.read()).value == "first"
        code, out, lines = await child.ended(sent)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stream.read()
    assert (code, out) == (0, "adapters closed\n")
    assert [line["event"] for line in lines] == ["stopping", "stopped"]
    assert caught.value.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}


async def test_cli_4_a_call_that_ends_within_the_grace_is_answered() -> None:
    async with _serving() as child, open_channel(child.address, ClientCredentials()) as channel:
        call = EchoClient(channel).say(StringValue(value="slow"))
        await asyncio.sleep(0.1)
        code, _, _ = await child.ended(signal.SIGTERM)
        assert (await call).value == "slow"
    assert code == 0


async def test_cli_4_a_watcher_of_health_sees_the_stop_and_does_not_hold_it_up() -> None:
    async with _serving() as child, open_channel(child.address, ClientCredentials()) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=SERVICE))
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        code, _, _ = await child.ended(signal.SIGTERM)
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert code == 0


async def test_cli_4_a_port_in_use_is_a_clear_error() -> None:
    async with _serving() as child:
        second = await _start("--port", str(child.port))
        out, err = await asyncio.wait_for(second.communicate(), 20)
    line = json.loads(err)
    assert second.returncode == 1
    assert line["event"] == "can't start"
    assert f"port {child.port} on 127.0.0.1" in line["reason"]
    assert "Traceback" not in err.decode()
    assert out == b""


async def test_cli_4_a_metrics_port_in_use_is_a_clear_error_and_the_parts_are_closed() -> None:
    async with _serving() as child:
        second = await _start("--metrics-port", str(child.port))
        out, err = await asyncio.wait_for(second.communicate(), 20)
    assert second.returncode == 1
    assert f"metrics_port {child.port}" in json.loads(err)["reason"]
    assert out == b"adapters closed\n"


async def test_cli_4_reflection_names_the_services() -> None:
    async with _serving() as child:
        with grpc.insecure_channel(child.address) as channel:
            names = await asyncio.to_thread(lambda: ProtoReflectionDescriptorDatabase(channel).get_services())
    assert {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} <= set(names)


async def test_cli_4_metrics_are_served() -> None:
    port = free_port()
    async with (
        _serving("--metrics-port", str(port)) as child,
        open_channel(child.address, ClientCredentials()) as channel,
    ):
        await EchoClient(channel).say(StringValue(value="hello"))
        page = await asyncio.to_thread(
            lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        )
    assert f'videotree_grpc_calls_total{{code="OK",method="/{SERVICE}/Say"}} 1.0' in page
    assert "process_resident_memory_bytes" in page


async def test_cli_3_a_wrong_configuration_is_one_line_and_exit_code_1() -> None:
    process = await _start("--port", "70000")
    _, err = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 1
    assert err.decode().splitlines() == [
        "videotree store: command line: port: Value error, Input should be between 0 and 65535 (got 70000)"
    ]


async def test_dep_2_the_probe_tells_a_serving_process_from_none(capsys: pytest.CaptureFixture[str]) -> None:
    async with _serving() as child:
        assert await probe(child.address) == "SERVING"
        assert await asyncio.to_thread(main, [child.address]) == 0
        assert await probe(f"http://{child.address}/v1/models") != "SERVING"
        address = child.address
    assert (await probe(address, 0.5)).startswith(("UNAVAILABLE", "DEADLINE_EXCEEDED"))
    assert main([]) == 2
    assert capsys.readouterr().out == "SERVING\n"
