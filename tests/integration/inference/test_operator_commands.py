"""INF-5, INF-8: `videotree models` and `videotree cache` against a running service, with either response cache."""

import asyncio
import contextlib
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from videotree.inference.v1 import chat_pb2, model_service_pb2, model_service_pb2_grpc

from bench.children import ROOT, service
from services.runtime.channels import ClientCredentials, open_channel
from tests.fakes.fake_upstream import FakeUpstream, fake_upstream
from tests.fakes.redis_process import RedisProcess

pytestmark = pytest.mark.timeout(300)


@contextlib.contextmanager
def cache_variables(backend: str, folder: Path) -> Any:
    """What chooses the response cache; the Redis is gone afterwards."""
    if backend == "disk":
        yield {"VIDEOTREE_CACHE_DIR": str(folder / "cache")}
        return
    redis = RedisProcess(str(folder))
    redis.start()
    try:
        yield {"REDIS_URL": redis.url}
    finally:
        redis.stop()


@contextlib.asynccontextmanager
async def inference(
    folder: Path, up: FakeUpstream, variables: Mapping[str, str]
) -> AsyncIterator[tuple[model_service_pb2_grpc.ModelServiceStub, str]]:
    """The service as a process of its own: its stub and its address."""
    environment = {"LLM_BASE_URL": up.base_url, "LLM_MODEL": "m", "REDIS_CACHE_TTL": "1000", **variables}
    async with service("inference", folder, environment) as child:
        address = f"127.0.0.1:{child.port}"
        async with open_channel(address, ClientCredentials()) as channel:
            yield model_service_pb2_grpc.ModelServiceStub(channel), address


async def videotree(folder: Path, address: str, *arguments: str) -> Any:
    """What the command line says, as JSON."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VIDEOTREE_", "LLM_", "REDIS_"))}
    environment = {
        **kept, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "gen"))), "VIDEOTREE_CONFIG": os.devnull,
        "VIDEOTREE_INFERENCE_ADDRESS": address,
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.trainer.main", *arguments, "--json",
        cwd=folder, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, complaint = await process.communicate()
    assert process.returncode == 0, complaint.decode()
    return json.loads(said)


REDIS = pytest.param(
    "redis",
    marks=[
        pytest.mark.redis,
        pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server binary on this machine"),
    ],
)


@pytest.mark.parametrize("backend", ["disk", REDIS])
async def test_inf_5_the_command_line_shows_renews_and_purges_the_cache(tmp_path, backend):
    with cache_variables(backend, tmp_path) as variables:
        async with fake_upstream() as up, inference(tmp_path, up, variables) as (stub, address):
            for salt in ("a", "a", "b", None):
                call = chat_pb2.ChatCall(
                    role=chat_pb2.ROLE_AGENT,
                    messages=[chat_pb2.Message(role="user", parts=[chat_pb2.ContentPart(text="hi")])],
                    salt=salt,
                )
                await stub.Chat(model_service_pb2.ChatRequest(call=call))
            (stats,) = await videotree(tmp_path, address, "cache", "stats")
            assert (stats["backend"], stats["entry_count"]) == (backend, 3)
            assert (stats["hit_count"], stats["miss_count"], stats["error_count"]) == (1, 3, 0)
            assert stats["ttl_seconds"] == 1000
            renewed = await videotree(tmp_path, address, "cache", "extend", "--ttl", "5000")
            assert renewed == {"renewed": 3, "entries": 3}
            again = await videotree(tmp_path, address, "cache", "extend", "--ttl", "4000")
            assert again == {"renewed": 0, "entries": 3}
            assert await videotree(tmp_path, address, "cache", "purge", "--salt", "a") == {"purged": 1}
            assert await videotree(tmp_path, address, "cache", "purge", "--unsalted") == {"purged": 1}
            (stats,) = await videotree(tmp_path, address, "cache", "stats")
            assert stats["entry_count"] == 1


async def test_inf_8_the_command_line_shows_opens_and_resets_a_breaker(tmp_path):
    variables = {"VIDEOTREE_CACHE_DIR": str(tmp_path / "cache")}
    async with fake_upstream() as up, inference(tmp_path, up, variables) as (_, address):
        (row,) = await videotree(tmp_path, address, "models")
        assert (row["name"], row["base_url"], row["breaker_state"]) == ("llm", up.base_url, "closed")
        assert (row["in_flight"], row["waiting"], row["retry_after_seconds"], row["last_error"]) == (0, 0, None, "")
        (row,) = await videotree(tmp_path, address, "models", "--open", "llm")
        assert row["breaker_state"] == "open"
        assert row["retry_after_seconds"] > 0
        (row,) = await videotree(tmp_path, address, "models", "--reset", "llm")
        assert (row["breaker_state"], row["retry_after_seconds"]) == ("closed", None)
