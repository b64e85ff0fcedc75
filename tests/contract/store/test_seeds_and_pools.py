"""Frozen splits and seeds (STO-10, STO-11), on every store."""

from __future__ import annotations

import json

import pytest
from grpc import StatusCode
from videotree.store.v1 import pool_pb2, run_service_pb2, training_service_pb2
from videotree.store.v1 import workspace_service_pb2 as pb

from tests.builders.store_requests import (
    WORKSPACE,
    append,
    change,
    freeze,
    make_workspace,
    manifest_of,
    pools,
    prediction,
    publish,
    refused,
    register,
    trace,
    version_texts,
)
from tests.fakes.store_client import StoreClient


def _get(workspace: str = WORKSPACE) -> pb.GetPoolsRequest:
    return pb.GetPoolsRequest(workspace=workspace)


async def test_sto_10_a_frozen_split_comes_back_and_the_manifest_records_it(client: StoreClient) -> None:
    await make_workspace(client)
    frozen = await client.workspaces.FreezePools(freeze(pools()))
    assert frozen.backup_name == ""
    got = await client.workspaces.GetPools(_get())
    assert list(got.pools.units) == list(pools().units)
    assert got.pools.sha256 == frozen.pools_sha256 == (await manifest_of(client)).pools_sha256
    assert json.loads(got.split_manifest_json) == {"val_ratio": 0.4}


async def test_sto_10_freezing_the_same_split_again_is_a_no_op(client: StoreClient) -> None:
    await make_workspace(client)
    first = await client.workspaces.FreezePools(freeze(pools()))
    assert await client.workspaces.FreezePools(freeze(pools())) == first


async def test_sto_10_another_split_needs_force_and_the_old_one_is_kept(client: StoreClient) -> None:
    await make_workspace(client)
    first = await client.workspaces.FreezePools(freeze(pools()))
    other = pools(u1="val", u2="diag")
    with refused(StatusCode.ALREADY_EXISTS) as answer:
        await client.workspaces.FreezePools(freeze(other))
    assert "--force" in answer.message
    assert answer.metadata["frozen_sha256"] == first.pools_sha256
    second = await client.workspaces.FreezePools(freeze(other, force=True))
    assert second.backup_name == f"pools.json.bak.{first.pools_sha256[:8]}"
    assert list((await client.workspaces.GetPools(_get())).pools.units) == list(other.units)


async def test_sto_10_nothing_frozen_is_not_found(client: StoreClient) -> None:
    await make_workspace(client)
    with refused(StatusCode.NOT_FOUND):
        await client.workspaces.GetPools(_get())


def _unit(**fields: object) -> pool_pb2.PoolUnit:
    values = {"unit_id": "u", "task_type": "T", "question_ids": ["q"], "pool": pool_pb2.POOL_DIAG}
    return pool_pb2.PoolUnit(**{**values, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("units", "field"),
    [
        ([], "pools.units"),
        ([_unit(pool=0)], "pools.units[0].pool"),
        ([_unit(question_ids=[])], "pools.units[0].question_ids"),
        ([_unit(unit_id="")], "pools.units[0].unit_id"),
        ([_unit(), _unit(question_ids=["p"])], "pools.units[1].unit_id"),
        ([_unit(), _unit(unit_id="w")], "pools.units[1].question_ids"),
        ([_unit(video_id="v"), _unit(unit_id="w", question_ids=["p"], video_id="v", pool=2)], "pools.units[1].pool"),
    ],
)
async def test_sto_10_an_unsound_split_is_refused_by_field(
    client: StoreClient, units: list[pool_pb2.PoolUnit], field: str
) -> None:
    await make_workspace(client)
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.workspaces.FreezePools(freeze(pool_pb2.Pools(baseline_run_id="b", units=units)))
    assert list(answer.fields) == [field]


async def test_sto_10_a_split_manifest_that_is_no_object_is_refused(client: StoreClient) -> None:
    await make_workspace(client)
    for text in ("", "[1]", "{", '{"a": NaN}x'):
        request = freeze(pools())
        request.split_manifest_json = text
        with refused(StatusCode.INVALID_ARGUMENT) as answer:
            await client.workspaces.FreezePools(request)
        assert list(answer.fields) == ["split_manifest_json"]


async def _baseline(client: StoreClient, count: int = 3) -> None:
    await make_workspace(client)
    await register(client, "base", "baseline")
    for number in range(count):
        await append(client, prediction("base", f"q{number}"), trace("base", f"q{number}", 0))
    await append(client, prediction("other", "q0"))


def _seed(**fields: object) -> pb.InitSeedRequest:
    values = {"source_workspace": WORKSPACE, "source_run_id": "base", "skills_version": "v1", "prompts_version": "v1"}
    return pb.InitSeedRequest(**{"name": "start", **values, **fields})  # type: ignore[arg-type]


async def test_sto_11_a_workspace_from_a_seed_has_all_of_it(client: StoreClient) -> None:
    await _baseline(client)
    await publish(client, change({"action-reasoning.md": "better\n"}, "v1"))
    await client.workspaces.FreezePools(freeze(pools()))
    made = await client.workspaces.InitSeed(_seed(skills_version="v2", with_pools=True))
    assert (made.seed.prediction_count, made.seed.baseline_run_id, made.duplicates_dropped) == (3, "base", 0)
    request = pb.CreateWorkspaceRequest(name="fresh", seed="start")
    manifest = (await client.workspaces.CreateWorkspace(request)).manifest
    assert (manifest.seed, manifest.baseline_run_id, manifest.current.skills) == ("start", "base", "v1")
    assert manifest.pools_sha256 == made.seed.pools_sha256 == (await manifest_of(client)).pools_sha256
    assert (await client.workspaces.GetPools(_get("fresh"))).pools == (await client.workspaces.GetPools(_get())).pools
    listing = run_service_pb2.ListPredictionsRequest(workspace="fresh")
    predictions = (await client.runs.ListPredictions(listing)).predictions
    assert [(each.run_id, each.question_id) for each in predictions] == [("base", f"q{n}") for n in range(3)]
    traces = await client.runs.ListTraces(run_service_pb2.ListTracesRequest(workspace="fresh", run_id="base"))
    assert len(traces.traces) == 3
    run = await client.runs.GetRun(run_service_pb2.GetRunRequest(workspace="fresh", run_id="base"))
    assert run == await client.runs.GetRun(run_service_pb2.GetRunRequest(workspace=WORKSPACE, run_id="base"))


async def test_sto_11_the_seeds_first_versions_are_the_chosen_ones(client: StoreClient) -> None:
    await _baseline(client)
    await publish(client, change({"action-reasoning.md": "better\n"}, "v1"))
    seed = (await client.workspaces.InitSeed(_seed(skills_version="v2"))).seed
    assert seed.pools_sha256 == ""
    await client.workspaces.CreateWorkspace(pb.CreateWorkspaceRequest(name=WORKSPACE, seed="start", force=True))
    assert (await version_texts(client, "v1"))["action-reasoning.md"] == "better\n"


async def test_sto_11_an_existing_seed_is_replaced_only_with_force(client: StoreClient) -> None:
    await _baseline(client)
    await client.workspaces.InitSeed(_seed())
    await append(client, prediction("base", "q9"))
    with refused(StatusCode.ALREADY_EXISTS):
        await client.workspaces.InitSeed(_seed())
    assert (await client.workspaces.InitSeed(_seed(force=True))).seed.prediction_count == 4
    listing = await client.workspaces.ListSeeds(pb.ListSeedsRequest())
    assert [(each.name, each.prediction_count) for each in listing.seeds] == [("start", 4)]


async def test_sto_11_a_seed_needs_a_run_with_predictions_and_a_frozen_split_if_asked(client: StoreClient) -> None:
    await _baseline(client)
    with refused(StatusCode.NOT_FOUND):
        await client.workspaces.InitSeed(_seed(source_run_id="none"))
    with refused(StatusCode.NOT_FOUND):
        await client.workspaces.InitSeed(_seed(skills_version="v7"))
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.workspaces.InitSeed(_seed(with_pools=True))
    assert list(answer.fields) == ["with_pools"]
    with refused(StatusCode.INVALID_ARGUMENT):
        await client.workspaces.InitSeed(_seed(name="../up"))
    assert not (await client.workspaces.ListSeeds(pb.ListSeedsRequest())).seeds


async def test_sto_11_pools_of_another_baseline_can_not_go_into_a_seed(client: StoreClient) -> None:
    await _baseline(client)
    await client.workspaces.FreezePools(freeze(pools(baseline="other")))
    with refused(StatusCode.FAILED_PRECONDITION) as answer:
        await client.workspaces.InitSeed(_seed(with_pools=True))
    assert (answer.metadata["recorded"], answer.metadata["found"]) == ("base", "other")


async def test_sto_10_pools_of_another_baseline_than_the_seeds_are_refused_on_loading(client: StoreClient) -> None:
    await _baseline(client)
    await client.workspaces.InitSeed(_seed())
    await client.workspaces.CreateWorkspace(pb.CreateWorkspaceRequest(name="fresh", seed="start"))
    await client.workspaces.FreezePools(freeze(pools(baseline="other"), workspace="fresh"))
    with refused(StatusCode.FAILED_PRECONDITION) as answer:
        await client.workspaces.GetPools(_get("fresh"))
    assert answer.reason == "POOLS_MISMATCH"
    assert (answer.metadata["recorded"], answer.metadata["found"]) == ("base", "other")


async def test_sto_11_offline_diagnoses_of_the_baseline_go_with_the_seed(client: StoreClient) -> None:
    await _baseline(client)
    diagnoses = training_service_pb2.PutBaselineDiagnosesRequest(workspace=WORKSPACE)
    diagnoses.diagnoses.add(run_id="base", question_id="q0", fingerprint="f0", tier="T2", cause="defect")
    diagnoses.diagnoses.add(run_id="other", question_id="q0", fingerprint="f1", tier="T1", cause="lapse")
    await client.training.PutBaselineDiagnoses(diagnoses)
    await client.workspaces.InitSeed(_seed())
    await client.workspaces.CreateWorkspace(pb.CreateWorkspaceRequest(name="fresh", seed="start"))
    request = training_service_pb2.ListBaselineDiagnosesRequest(workspace="fresh")
    assert [each.fingerprint for each in (await client.training.ListBaselineDiagnoses(request)).diagnoses] == ["f0"]
