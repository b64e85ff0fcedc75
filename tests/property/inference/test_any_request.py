"""QUA-13: any field of any request to inference may hold anything: an answer or a clear status, and no crash."""

import random

from videotree.inference.v1 import agent_service_pb2, model_service_pb2

from bench.any_request import Answers, ask_anything, services_of
from services.inference.config import InferenceConfig
from services.inference.main import build
from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.testing import local_server
from tests.builders.depth import SCALE
from tests.builders.store_requests import WORKSPACE, make_workspace
from tests.fakes.fake_upstream import fake_upstream
from tests.fakes.in_memory_store import in_memory_store_parts
from tests.fakes.store_client import store_client

SOUND = {
    "workspace": [WORKSPACE], "dataset": ["sample"], "role": [1, 2, 3, 4, 5, 6, "user", "system"],
    "parameters_json": ["", "{}"], "tools_json": [""], "response_format_json": [""], "version": ["v1"],
    "prompts_version": ["v1"], "text": ["What happens?"], "texts": ["a"], "endpoint": ["llm"], "run_id": ["r"],
    "max_steps": [3], "concurrency": [2], "cache_mode": [0, 1, 2, 3], "solver": [0, 1, 2], "skill_mode": [0, 1, 2, 3],
}  # fmt: skip


async def test_qua_13_any_field_may_hold_anything(tmp_path):
    answers = Answers()
    rng = random.Random(5)
    async with (
        fake_upstream() as up,
        local_server("store", in_memory_store_parts()) as store,
        open_channel(f"127.0.0.1:{store.port}", ClientCredentials()) as to_store,
    ):
        await make_workspace(store_client(to_store))
        settings = InferenceConfig(
            port=0, metrics_port=0, cache_dir=tmp_path / "cache", store_address=f"127.0.0.1:{store.port}",
            llm_base_url=up.base_url, llm_model="m", retry_base_seconds=0.0, patience_seconds=0.0,
            cooldown_seconds=0.01,
        )  # fmt: skip
        async with (
            local_server("inference", await build(settings), settings) as running,
            open_channel(f"127.0.0.1:{running.port}", ClientCredentials()) as channel,
        ):
            for _ in range(60 * SCALE):
                for service in services_of(model_service_pb2, agent_service_pb2):
                    await ask_anything(channel, service, rng, SOUND, answers)
    assert answers.tally.faults == []
    assert {"ListEndpoints", "ResetBreaker", "GetCacheStats", "PurgeCache"} <= set(answers.by_method)
    assert {"Chat", "StreamChat"} & set(answers.by_method)
    assert [path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "cache")] == []
