"""The gate's `Store` port, on the in-memory fake and on the real store over gRPC."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.gate.adapters.store_client import UNITS_PER_CALL, GrpcStore
from services.gate.domain.errors import MissingInStore, NeighbourFailed
from services.gate.use_cases.ports import BaselineKey, BaselineRow, PooledUnit, Store
from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.testing import free_port, local_channel
from tests.builders.store_requests import TYPE, WORKSPACE, freeze, make_workspace, pools
from tests.fakes.gate_fakes import InMemoryStore
from tests.fakes.store_client import disk_store_parts, store_client

FILES = {"action-reasoning.md": "look\n", "default-strategy.md": "search\n"}
PROMPTS = {"agent.system.md": "You answer.\n"}
UNITS = {
    "u1": PooledUnit(TYPE, ("q-u1",), False),
    "u2": PooledUnit(TYPE, ("q-u2",), False),
    "u3": PooledUnit(TYPE, ("q-u3",), True),
}
KEY = BaselineKey(WORKSPACE, TYPE, "a" * 64, "v1")


@contextlib.asynccontextmanager
async def real_store(root: Path) -> AsyncIterator[GrpcStore]:
    async with local_channel("store", await disk_store_parts(root)) as channel:
        client = store_client(channel)
        await make_workspace(client)
        await client.workspaces.FreezePools(freeze(pools()))
        yield GrpcStore(channel)


@pytest.fixture(params=["memory", "disk"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "memory":
        held = InMemoryStore({(WORKSPACE, "v1"): FILES}, UNITS)
        held.prompts = {(WORKSPACE, "v1"): PROMPTS}
        yield held
    else:
        async with real_store(tmp_path / "data") as connected:
            yield connected


def row(unit_id: str, correct: bool, key: BaselineKey = KEY) -> BaselineRow:
    return BaselineRow(key, unit_id, correct, "r_e0_s0_gate_action-reasoning_base")


async def test_skill_files_are_those_of_the_version(store: Store) -> None:
    assert dict(await store.skill_files(WORKSPACE, "v1")) == FILES


async def test_evo_12_prompt_files_are_those_of_the_version(store: Store) -> None:
    assert dict(await store.prompt_files(WORKSPACE, "v1")) == PROMPTS


async def test_units_come_with_type_questions_and_whether_they_are_held_out(store: Store) -> None:
    assert dict(await store.pooled_units(WORKSPACE)) == UNITS


async def test_what_is_missing_is_told_apart(store: Store) -> None:
    for asked in (
        store.skill_files(WORKSPACE, "v9"),
        store.skill_files("nowhere", "v1"),
        store.prompt_files(WORKSPACE, "v9"),
        store.pooled_units("nowhere"),
    ):
        with pytest.raises(MissingInStore):
            await asked


async def test_results_are_cached_by_type_skill_prompts_and_unit(store: Store) -> None:
    await store.cache_results([row("u1", True), row("u2", False)])
    assert dict(await store.cached_results(KEY, ["u1", "u2", "u3"])) == {"u1": True, "u2": False}
    assert dict(await store.cached_results(KEY, ["u2"])) == {"u2": False}
    for other in (
        BaselineKey(WORKSPACE, "Other", "a" * 64, "v1"),
        BaselineKey(WORKSPACE, TYPE, "b" * 64, "v1"),
        BaselineKey(WORKSPACE, TYPE, "a" * 64, "v2"),
    ):
        assert dict(await store.cached_results(other, ["u1", "u2"])) == {}


async def test_an_existing_result_keeps_its_first_value(store: Store) -> None:
    await store.cache_results([row("u1", True)])
    await store.cache_results([row("u1", False), row("u2", True)])
    assert dict(await store.cached_results(KEY, ["u1", "u2"])) == {"u1": True, "u2": True}


async def test_more_units_than_one_call_takes_come_back_whole(store: Store) -> None:
    count = UNITS_PER_CALL + 7
    await store.cache_results([row(f"many-{number}", number % 2 == 0) for number in range(count)])
    found = await store.cached_results(KEY, [f"many-{number}" for number in range(count)])
    assert len(found) == count
    assert sum(found.values()) == (count + 1) // 2


async def test_a_store_that_is_away_is_a_failed_neighbour() -> None:
    async with open_channel(f"127.0.0.1:{free_port()}", ClientCredentials()) as channel:
        with pytest.raises(NeighbourFailed, match="store GetPools: UNAVAILABLE") as raised:
            await GrpcStore(channel).pooled_units(WORKSPACE)
    assert type(raised.value) is NeighbourFailed
