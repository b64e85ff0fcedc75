"""Clearing and committing steps and epochs (STO-7, STO-8), on every store."""

from __future__ import annotations

from typing import Any

from grpc import StatusCode
from videotree.store.v1 import evaluation_pb2, evolution_record_pb2, gate_record_pb2, pool_pb2, workspace_pb2
from videotree.store.v1 import training_service_pb2 as pb

from tests.builders.store_requests import (
    TYPE,
    WORKSPACE,
    append,
    change,
    checkpoint,
    listed,
    make_workspace,
    manifest_of,
    prediction,
    publish,
    refused,
    step_commit,
    trace,
    version_texts,
)
from tests.fakes.store_client import StoreClient


def _run(run_id: str = "r") -> dict[str, str]:
    return {"workspace": WORKSPACE, "run_id": run_id}


async def _clear(client: StoreClient, step: int, epoch: int = 0, run_id: str = "r") -> pb.ClearStepResponse:
    return await client.training.ClearStep(pb.ClearStepRequest(**_run(run_id), epoch=epoch, step=step))


async def test_sto_7_clearing_a_step_removes_exactly_its_rollout_and_gate_rows(client: StoreClient) -> None:
    await make_workspace(client)
    gone = ["r_e0_s1", "r_e0_s1_gate_a_base", "r_e0_s1_gate_a_cand", "r_e0_s1_gate_"]
    kept = [
        "r",
        "r_e0_s10",
        "r_e0_s10_gate_a_base",
        "r_e0_s1_gate",
        "r_e0_s1_val",
        "r_e0_s1Xgate_a",
        "rXe0_s1",
        "rXe0_s1_gate_a",
        "r_e01_s1",
        "R_e0_s1",
        "R_e0_s1_gate_a_base",
        "xr_e0_s1",
        "r_e1_s1",
    ]
    for run_id in [*gone, *kept]:
        await append(client, prediction(run_id, "q0"), trace(run_id, "q0", 0), trace(run_id, "q0", 1))
    cleared = await _clear(client, 1)
    assert (cleared.prediction_count, cleared.trace_count, cleared.already_committed) == (4, 8, False)
    assert [run_id for run_id, _ in await listed(client, include_gate_runs=True)] == sorted(kept)


async def test_sto_7_clearing_what_is_not_there_is_no_error(client: StoreClient) -> None:
    await make_workspace(client)
    assert await _clear(client, 3) == pb.ClearStepResponse()


async def test_sto_7_percent_signs_in_a_run_id_are_literal(client: StoreClient) -> None:
    await make_workspace(client)
    await append(client, prediction("ab_e0_s1", "q0"), prediction("a%_e0_s1_gate_x", "q0"))
    assert (await _clear(client, 1, run_id="a%")).prediction_count == 1
    assert await listed(client) == [("ab_e0_s1", "q0")]


async def test_sto_7_a_committed_step_is_not_cleared(client: StoreClient) -> None:
    await make_workspace(client)
    await append(client, prediction("r_e0_s0", "q0"))
    await client.training.CommitStep(step_commit())
    assert (await _clear(client, 0)).already_committed
    assert await listed(client) == [("r_e0_s0", "q0")]
    assert len((await client.training.ListStepReports(pb.ListStepReportsRequest(**_run()))).rows) == 1


async def test_sto_8_a_step_commits_all_it_decided(client: StoreClient) -> None:
    await make_workspace(client)
    done = await client.training.CommitStep(step_commit())
    assert [(each.version, each.parent) for each in done.versions] == [("v2", "v1")]
    assert done.manifest.current.skills == "v2"
    assert done.manifest == await manifest_of(client)
    evidence = await client.training.ListGateEvidence(pb.ListGateEvidenceRequest(**_run()))
    assert [(row.epoch, row.step, row.evidence.ladder_rank) for row in evidence.rows] == [(0, 0, 0), (0, 0, 1)]
    pairs = await client.training.ListQuadrantPairs(pb.ListQuadrantPairsRequest(**_run()))
    assert [row.pair.quadrant for row in pairs.rows] == [gate_record_pb2.QUADRANT_WIN]
    reports = await client.training.ListStepReports(pb.ListStepReportsRequest(**_run()))
    assert [row.report.gate_action for row in reports.rows] == ["ACCEPT_CONFIRMED"]
    assert not reports.rows[0].report.HasField("base_accuracy")
    assert reports.rows[0].report.accepted_version == "v2"
    records = await client.training.ListEvolutionRecords(pb.ListEvolutionRecordsRequest(**_run()))
    assert [row.record.accepted_version for row in records.rows] == ["v2"]
    loaded = await client.training.LoadCheckpoint(pb.LoadCheckpointRequest(**_run()))
    assert loaded.checkpoint.step == 1
    assert loaded.checkpoint.HasField("committed_time")


async def test_sto_8_repeating_a_commit_changes_nothing_and_returns_the_first_result(client: StoreClient) -> None:
    await make_workspace(client)
    first = await client.training.CommitStep(step_commit())
    later = step_commit(step=1, changes=[change({"action-reasoning.md": "thrice\n"})], checkpoint=checkpoint(step=2))
    await client.training.CommitStep(later)
    again = await client.training.CommitStep(step_commit(changes=[change({"action-reasoning.md": "other\n"})]))
    assert again.already_committed
    assert (list(again.versions), again.manifest) == (list(first.versions), first.manifest)
    assert (await manifest_of(client)).current.skills == "v3"
    loaded = await client.training.LoadCheckpoint(pb.LoadCheckpointRequest(**_run()))
    assert loaded.checkpoint.step == 2


async def test_sto_8_accepts_land_one_after_the_other_each_keeping_the_others_files(client: StoreClient) -> None:
    await make_workspace(client)
    changes = [change({"action-reasoning.md": "A\n"}), change({"default-strategy.md": "D\n"})]
    done = await client.training.CommitStep(step_commit(changes=changes))
    assert [(each.version, each.parent) for each in done.versions] == [("v2", "v1"), ("v3", "v2")]
    assert await version_texts(client, "v3") == {"action-reasoning.md": "A\n", "default-strategy.md": "D\n"}


async def test_sto_8_records_name_the_version_that_was_really_published(client: StoreClient) -> None:
    await make_workspace(client)
    await publish(client, change({"manual.md": "m\n"}, "v1"))
    guessed = evolution_record_pb2.EvolutionRecord(
        target="action-reasoning.md", task_type=TYPE, status="accepted", accepted_version="v2"
    )
    rejected = evolution_record_pb2.EvolutionRecord(target="other.md", task_type="Other", status="rejected")
    await client.training.CommitStep(step_commit(evolution_records=[guessed, rejected]))
    records = await client.training.ListEvolutionRecords(pb.ListEvolutionRecordsRequest(**_run()))
    assert [row.record.accepted_version for row in records.rows] == ["v3", ""]
    reports = await client.training.ListStepReports(pb.ListStepReportsRequest(**_run()))
    assert [row.report.accepted_version for row in reports.rows] == ["v3"]


async def test_sto_8_a_parent_that_is_no_longer_current_is_aborted_and_nothing_is_written(client: StoreClient) -> None:
    await make_workspace(client)
    await client.training.CommitStep(step_commit())
    stale = step_commit(step=1, changes=[change({"z.md": "z"}), change({"y.md": "y"}, "v1")])
    with refused(StatusCode.ABORTED) as answer:
        await client.training.CommitStep(stale)
    assert answer.reason == "STALE_PARENT"
    assert answer.metadata["current"] == "v3"
    assert (await manifest_of(client)).current.skills == "v2"
    with refused(StatusCode.NOT_FOUND):
        await version_texts(client, "v3")
    assert len((await client.training.ListStepReports(pb.ListStepReportsRequest(**_run()))).rows) == 1
    assert (await publish(client, change({"n.md": "n"}, "v2"))).version.version == "v3"


async def test_sto_8_a_fault_in_any_part_writes_no_part(client: StoreClient) -> None:
    await make_workspace(client)
    faulty: list[tuple[dict[str, Any], str]] = [
        ({"evidence": [gate_record_pb2.GateEvidence(task_type="", ladder_rank=0)]}, "gate_evidence[0].task_type"),
        ({"evidence": [gate_record_pb2.GateEvidence(task_type="T", ladder_rank=-1)]}, "gate_evidence[0].ladder_rank"),
        (
            {"evidence": [gate_record_pb2.GateEvidence(task_type="T", e_value=float("nan"))]},
            "gate_evidence[0].e_value",
        ),
        ({"quadrants": [gate_record_pb2.QuadrantPair(task_type="T", unit_id="u")]}, "quadrant_pairs[0].quadrant"),
        (
            {"step_reports": [gate_record_pb2.StepReport(task_type="T", verdict_json="{")]},
            "step_reports[0].verdict_json",
        ),
        ({"checkpoint": checkpoint("other")}, "checkpoint.run_id"),
        ({"changes": [change({"BAD": "x"})]}, "overrides['BAD']"),
        ({"step": -1}, "step"),
        ({"epoch": -2}, "epoch"),
    ]
    for fields, field in faulty:
        with refused(StatusCode.INVALID_ARGUMENT) as answer:
            await client.training.CommitStep(step_commit(**fields))
        assert list(answer.fields) == [field]
    assert not (await client.training.ListStepReports(pb.ListStepReportsRequest(**_run()))).rows
    assert not (await client.training.ListEvolutionRecords(pb.ListEvolutionRecordsRequest(**_run()))).rows
    assert (await manifest_of(client)).current.skills == "v1"


async def test_evidence_beyond_the_range_of_a_double_is_kept(client: StoreClient) -> None:
    await make_workspace(client)
    huge = gate_record_pb2.GateEvidence(task_type=TYPE, ladder_rank=0, unit_id="u", e_value=float("inf"))
    await client.training.CommitStep(step_commit(evidence=[huge]))
    rows = (await client.training.ListGateEvidence(pb.ListGateEvidenceRequest(**_run()))).rows
    assert rows[0].evidence == huge


def _epoch_commit(epoch: int = 0, **fields: Any) -> pb.CommitEpochRequest:
    values: dict[str, Any] = {
        "dual_metrics": [
            evaluation_pb2.DualMetric(version_kind="final", pool=pool_pb2.POOL_VAL, hard=0.5, skills_version="v1")
        ],
        "holdout_evals": [
            evaluation_pb2.HoldoutEval(
                skills_version="v1", prompts_version="v1", accuracy=0.4, how=evaluation_pb2.HOLDOUT_HOW_MEASURED
            )
        ],
        "holdout_lines": [
            evaluation_pb2.HoldoutLine(epoch=epoch, line="final", how=evaluation_pb2.HOLDOUT_HOW_MEASURED)
        ],
        "observations": [evaluation_pb2.UnitObservation(unit_id="u0", correct=True)],
        "best": workspace_pb2.Best(
            hard=workspace_pb2.BestEntry(skills="v1", prompts="v1", score=0.5, epoch=epoch, run_id="r")
        ),
        "checkpoint": checkpoint(epoch=epoch + 1, step=0),
    }
    return pb.CommitEpochRequest(**_run(), epoch=epoch, **{**values, **fields})


async def test_sto_8_an_epoch_commits_all_its_end_decided_once(client: StoreClient) -> None:
    await make_workspace(client)
    first = await client.training.CommitEpoch(_epoch_commit())
    assert first.manifest.best.hard.score == 0.5
    again = await client.training.CommitEpoch(_epoch_commit(observations=[]))
    assert (again.already_committed, again.manifest) == (True, first.manifest)
    metrics = (await client.training.ListDualMetrics(pb.ListDualMetricsRequest(**_run()))).dual_metrics
    assert [(each.epoch, each.version_kind, each.pool, each.hard) for each in metrics] == [
        (0, "final", pool_pb2.POOL_VAL, 0.5)
    ]
    assert not metrics[0].HasField("soft")
    holdout = await client.training.ListHoldoutEvals(pb.ListHoldoutEvalsRequest(**_run()))
    assert [each.accuracy for each in holdout.holdout_evals] == [0.4]
    lines = await client.training.ListHoldoutLines(pb.ListHoldoutLinesRequest(**_run()))
    assert [(each.epoch, each.line) for each in lines.holdout_lines] == [(0, "final")]


async def test_sto_13_what_epochs_evaluated_is_listed_by_page_in_the_documented_order(client: StoreClient) -> None:
    await make_workspace(client)
    for epoch, version in ((0, "v1"), (1, "v3"), (2, "v2")):
        await client.training.CommitEpoch(
            _epoch_commit(
                epoch,
                dual_metrics=[
                    evaluation_pb2.DualMetric(version_kind=kind, pool=pool_pb2.POOL_VAL)
                    for kind in ("initial", "final")
                ],
                holdout_evals=[
                    evaluation_pb2.HoldoutEval(
                        skills_version=version, prompts_version="v1", how=evaluation_pb2.HOLDOUT_HOW_MEASURED
                    )
                ],
                holdout_lines=[
                    evaluation_pb2.HoldoutLine(epoch=epoch, line=line, how=evaluation_pb2.HOLDOUT_HOW_MEASURED)
                    for line in ("final", "best_hard")
                ],
            )
        )
    asks = client.training
    metrics = await _paged(asks.ListDualMetrics, pb.ListDualMetricsRequest, "dual_metrics")
    assert [(each.epoch, each.version_kind) for each in metrics] == [
        (epoch, kind) for epoch in range(3) for kind in ("final", "initial")
    ]
    evals = await _paged(asks.ListHoldoutEvals, pb.ListHoldoutEvalsRequest, "holdout_evals")
    assert [each.skills_version for each in evals] == ["v1", "v2", "v3"]
    lines = await _paged(asks.ListHoldoutLines, pb.ListHoldoutLinesRequest, "holdout_lines")
    assert [(each.epoch, each.line) for each in lines] == [
        (epoch, line) for epoch in range(3) for line in ("best_hard", "final")
    ]


async def _paged(ask: Any, request: Any, field: str) -> list[Any]:
    """Read a list two items a page, none of which may hold more."""
    items: list[Any] = []
    token = ""
    while token or not items:
        page = await ask(request(**_run(), page_size=2, page_token=token))
        assert len(getattr(page, field)) <= 2
        items += getattr(page, field)
        token = page.next_page_token
    return items


async def test_unit_estimates_are_means_over_observed_epochs(client: StoreClient) -> None:
    await make_workspace(client)
    for epoch, correct in ((-1, False), (0, True), (1, True), (1, False)):
        observation = evaluation_pb2.UnitObservation(unit_id="u0", correct=correct)
        await client.training.CommitEpoch(_epoch_commit(epoch, observations=[observation], best=workspace_pb2.Best()))
    (estimate,) = (await client.training.ListUnitEstimates(pb.ListUnitEstimatesRequest(**_run()))).unit_estimates
    assert abs(estimate.estimate - 2 / 3) < 1e-12
    assert (estimate.observation_count, estimate.last_epoch) == (3, 1)


async def test_an_epochs_best_must_be_in_range(client: StoreClient) -> None:
    await make_workspace(client)
    best = workspace_pb2.Best(hard=workspace_pb2.BestEntry(skills="v1", prompts="v1", score=2.0))
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.training.CommitEpoch(_epoch_commit(best=best))
    assert list(answer.fields) == ["best.hard.score"]
    assert not (await client.training.ListDualMetrics(pb.ListDualMetricsRequest(**_run()))).dual_metrics


async def test_a_slow_update_is_published_with_its_epoch(client: StoreClient) -> None:
    await make_workspace(client)
    done = await client.training.CommitEpoch(_epoch_commit(changes=[change({"action-reasoning.md": "slow\n"})]))
    assert done.manifest.current.skills == done.versions[0].version == "v2"
