"""Checkpoints, held-out evaluations, baseline results and diagnoses (STO-5, STO-9), on every store."""

from __future__ import annotations

from grpc import StatusCode
from videotree.store.v1 import checkpoint_pb2, evaluation_pb2
from videotree.store.v1 import training_service_pb2 as pb

from tests.builders.store_requests import TYPE, WORKSPACE, checkpoint, make_workspace, refused
from tests.fakes.store_client import StoreClient

_RUN = {"workspace": WORKSPACE, "run_id": "r"}


def _fingerprints(**values: str) -> checkpoint_pb2.Fingerprints:
    return checkpoint_pb2.Fingerprints(values=values)


async def test_sto_9_a_checkpoint_comes_back_with_its_fingerprints(client: StoreClient) -> None:
    await make_workspace(client)
    wanted = checkpoint(trainer_state_json='{"cooldowns": {}}', fingerprints=_fingerprints(pools="p", prompts="m"))
    saved = await client.training.SaveCheckpoint(pb.SaveCheckpointRequest(workspace=WORKSPACE, checkpoint=wanted))
    request = pb.LoadCheckpointRequest(**_RUN, fingerprints=_fingerprints(pools="p", prompts="m"))
    loaded = await client.training.LoadCheckpoint(request)
    assert loaded.checkpoint == saved.checkpoint
    saved.checkpoint.ClearField("committed_time")
    assert saved.checkpoint == wanted


async def test_sto_9_differing_fingerprints_are_refused_naming_each_key(client: StoreClient) -> None:
    await make_workspace(client)
    wanted = checkpoint(fingerprints=_fingerprints(pools="p", prompts="m", seed="1"))
    await client.training.SaveCheckpoint(pb.SaveCheckpointRequest(workspace=WORKSPACE, checkpoint=wanted))
    with refused(StatusCode.FAILED_PRECONDITION) as answer:
        given = _fingerprints(pools="other", prompts="m", width="8")
        await client.training.LoadCheckpoint(pb.LoadCheckpointRequest(**_RUN, fingerprints=given))
    assert answer.reason == "FINGERPRINT_MISMATCH"
    assert set(answer.metadata) == {"pools", "seed", "width"}
    assert "pools" in answer.message
    assert (await client.training.LoadCheckpoint(pb.LoadCheckpointRequest(**_RUN))).checkpoint.step == 1


async def test_sto_9_a_run_without_checkpoint_is_not_found(client: StoreClient) -> None:
    await make_workspace(client)
    with refused(StatusCode.NOT_FOUND):
        await client.training.LoadCheckpoint(pb.LoadCheckpointRequest(**_RUN))


async def test_sto_9_trainer_state_that_is_no_object_is_refused(client: StoreClient) -> None:
    await make_workspace(client)
    for text in ("[", "[1]", "3"):
        with refused(StatusCode.INVALID_ARGUMENT) as answer:
            wanted = checkpoint(trainer_state_json=text)
            await client.training.SaveCheckpoint(pb.SaveCheckpointRequest(workspace=WORKSPACE, checkpoint=wanted))
        assert list(answer.fields) == ["checkpoint.trainer_state_json"]


def _holdout(how: evaluation_pb2.HoldoutHow, **fields: float) -> pb.PutHoldoutEvalRequest:
    row = evaluation_pb2.HoldoutEval(run_id="r", skills_version="v1", prompts_version="v1", how=how)
    for name, value in fields.items():
        setattr(row, name, value)
    return pb.PutHoldoutEvalRequest(workspace=WORKSPACE, holdout_eval=row)


async def test_trn_13b_a_held_out_result_is_never_replaced_by_an_intent(client: StoreClient) -> None:
    await make_workspace(client)
    intent = _holdout(evaluation_pb2.HOLDOUT_HOW_INTENDED)
    assert not (await client.training.PutHoldoutEval(intent)).holdout_eval.HasField("accuracy")
    measured = await client.training.PutHoldoutEval(_holdout(evaluation_pb2.HOLDOUT_HOW_MEASURED, accuracy=0.5))
    assert await client.training.PutHoldoutEval(intent) == measured
    listed = await client.training.ListHoldoutEvals(pb.ListHoldoutEvalsRequest(**_RUN))
    assert list(listed.holdout_evals) == [measured.holdout_eval]
    with refused(StatusCode.INVALID_ARGUMENT):
        await client.training.PutHoldoutEval(_holdout(evaluation_pb2.HOLDOUT_HOW_UNSPECIFIED))


async def test_sto_5_a_cached_baseline_result_keeps_its_first_value(client: StoreClient) -> None:
    await make_workspace(client)

    def put(unit_id: str, correct: bool) -> pb.PutBaselineResultsRequest:
        row = evaluation_pb2.BaselineResult(
            task_type=TYPE, skill_sha256="s", prompts_version="v1", unit_id=unit_id, correct=correct, run_id="r"
        )
        return pb.PutBaselineResultsRequest(workspace=WORKSPACE, results=[row])

    assert (await client.training.PutBaselineResults(put("u1", True))).created_count == 1
    assert (await client.training.PutBaselineResults(put("u1", False))).created_count == 0
    await client.training.PutBaselineResults(put("u0", False))
    key = {"workspace": WORKSPACE, "task_type": TYPE, "skill_sha256": "s", "prompts_version": "v1"}
    all_of_it = await client.training.GetBaselineResults(pb.GetBaselineResultsRequest(**key))
    assert [(each.unit_id, each.correct) for each in all_of_it.results] == [("u0", False), ("u1", True)]
    assert all(each.HasField("created_time") for each in all_of_it.results)
    some = await client.training.GetBaselineResults(pb.GetBaselineResultsRequest(**key, unit_ids=["u1", "u7"]))
    assert [each.unit_id for each in some.results] == ["u1"]
    other = await client.training.GetBaselineResults(pb.GetBaselineResultsRequest(**{**key, "skill_sha256": "t"}))
    assert not other.results


async def test_diagnosis_details_are_paged_by_whole_questions(client: StoreClient) -> None:
    await make_workspace(client)
    request = pb.PutDiagnosisDetailsRequest(workspace=WORKSPACE)
    for number in range(5):
        question_id = f"q{number}"
        if number != 2:
            request.metrics.add(run_id="r", question_id=question_id, metrics_json='{"visits": 1}')
        for step in range(2):
            request.spans.add(run_id="r", question_id=question_id, step=step, evaluation_json="{}")
        request.stages.add(run_id="r", question_id=question_id, stage="visited", finding_json="{}")
    request.metrics.add(run_id="other", question_id="q0", metrics_json="{}")
    assert (await client.training.PutDiagnosisDetails(request)).row_count == 20
    assert (await client.training.PutDiagnosisDetails(request)).row_count == 20
    seen: list[list[str]] = []
    token = ""
    while True:
        page = await client.training.ListDiagnosisDetails(
            pb.ListDiagnosisDetailsRequest(**_RUN, page_size=2, page_token=token)
        )
        seen.append([each.question_id for each in page.stages])
        assert len(page.spans) == 2 * len(page.stages)
        token = page.next_page_token
        if not token:
            break
    assert seen == [["q0", "q1"], ["q2", "q3"], ["q4"]]


async def test_offline_diagnoses_are_kept_by_fingerprint(client: StoreClient) -> None:
    await make_workspace(client)
    for tier in ("uncertain", "T2"):
        request = pb.PutBaselineDiagnosesRequest(workspace=WORKSPACE)
        request.diagnoses.add(run_id="base", question_id="q0", fingerprint="f", tier=tier, degraded=tier != "T2")
        assert (await client.training.PutBaselineDiagnoses(request)).row_count == 1
    listed = await client.training.ListBaselineDiagnoses(
        pb.ListBaselineDiagnosesRequest(workspace=WORKSPACE, run_id="base")
    )
    assert [(each.tier, each.degraded) for each in listed.diagnoses] == [("T2", False)]
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        request = pb.PutBaselineDiagnosesRequest(workspace=WORKSPACE)
        request.diagnoses.add(run_id="base", question_id="q0", fingerprint="")
        await client.training.PutBaselineDiagnoses(request)
    assert list(answer.fields) == ["diagnoses[0].fingerprint"]
