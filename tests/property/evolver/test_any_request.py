"""QUA-13: any field of any request to the evolver may hold anything: an answer or a clear status, and no crash."""

import random

from videotree.evolver.v1 import evolver_service_pb2

from bench.any_request import Answers, ask_anything, services_of
from services.evolver.config import EvolverConfig
from services.evolver.main import build
from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.testing import free_port, local_channel, local_server
from tests.builders.cases import SKILL
from tests.builders.depth import SCALE
from tests.builders.store_requests import WORKSPACE, make_workspace
from tests.fakes.in_memory_store import in_memory_store_parts
from tests.fakes.store_client import store_client

SOUND = {
    "workspace": [WORKSPACE], "run_id": ["r"], "skills_version": ["v1"], "dataset": ["sample"], "task_type": ["Action"],
    "skill_text": [SKILL], "current_text": [SKILL], "candidate_text": [SKILL], "base_text": [SKILL], "op": [1, 2, 3, 4],
    "target_file": ["action.md"], "statistics_json": ["{}"], "edit_budget": [2], "update_mode": [0, 1, 2],
    "target_kind": [0, 1, 2],
}  # fmt: skip


async def test_qua_13_any_field_may_hold_anything():
    answers = Answers()
    rng = random.Random(6)
    async with (
        local_server("store", in_memory_store_parts()) as store,
        open_channel(f"127.0.0.1:{store.port}", ClientCredentials()) as to_store,
    ):
        await make_workspace(store_client(to_store))
        config = EvolverConfig(
            port=0, metrics_port=0, store_address=f"127.0.0.1:{store.port}",
            inference_address=f"127.0.0.1:{free_port()}", model_retry_seconds=0.0, store_retry_seconds=0.0,
        )  # fmt: skip
        async with local_channel("evolver", await build(config), config) as channel:
            for _ in range(60 * SCALE):
                for service in services_of(evolver_service_pb2):
                    await ask_anything(channel, service, rng, SOUND, answers)
    assert answers.tally.faults == []
    assert {"ApplyEdits", "ValidateSkill", "ConsolidateAppendix"} <= set(answers.by_method)
