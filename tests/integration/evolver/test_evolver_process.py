"""CLI-4 and EVO-1: the evolver as a process."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from videotree.evolver.v1 import evolver_service_pb2, evolver_service_pb2_grpc

from services.evolver.templates import REQUIRED
from services.runtime.testing import free_port

COMMAND = [sys.executable, "-m", "services.evolver.main", "--metrics-port", "0"]
ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}"}


def test_evo_1_a_start_without_templates_names_all_of_them_and_fails(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "VIDEOTREE_EVOLVER_PROMPTS_DIR": str(tmp_path)}
    ended = subprocess.run(
        [*COMMAND, "--port", "0"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert all(name in ended.stdout + ended.stderr for name in REQUIRED)
    assert "Traceback" not in ended.stdout + ended.stderr


async def test_cli_4_health_reflection_and_a_clean_stop(tmp_path: Path) -> None:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "--port",
        str(port),
        env=ENVIRONMENT,
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            async with asyncio.timeout(60):
                await channel.channel_ready()
            name = "videotree.evolver.v1.EvolverService"
            health = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=name))
            assert health.status == health_pb2.HealthCheckResponse.SERVING
            request = reflection_pb2.ServerReflectionRequest(list_services="")
            listed = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([request]))
            services = [service.name async for answer in listed for service in answer.list_services_response.service]
            assert name in services
            evolver = evolver_service_pb2_grpc.EvolverServiceStub(channel)
            answer = await evolver.ApplyEdits(evolver_service_pb2.ApplyEditsRequest(skill_text="text"))
            assert (answer.text, answer.accepted) == ("text", False)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize(
    ("variable", "value"),
    [("VIDEOTREE_EVOLVER_MODEL_CONCURRENCY", "0"), ("VIDEOTREE_EVOLVER_SKILL_MAX_CHARS", "many")],
)
def test_cli_3_a_bad_value_is_refused_by_name(variable: str, value: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [*COMMAND, "--show-config"],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, variable: value},
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert variable in ended.stderr
