"""Runs, predictions, traces and model calls (STO-5, STO-6, STO-12, STO-13), on every store."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import StatusCode
from videotree.store.v1 import llm_call_pb2, run_pb2
from videotree.store.v1 import run_service_pb2 as pb

from tests.builders.store_requests import (
    WORKSPACE,
    append,
    listed,
    make_workspace,
    prediction,
    refused,
    register,
    trace,
)
from tests.fakes.store_client import StoreClient


async def test_sto_5_registering_again_keeps_the_first_row_and_sets_it_running(client: StoreClient) -> None:
    await make_workspace(client)
    first = await register(client, "r")
    assert (first.created, first.run.status) == (True, run_pb2.RUN_STATUS_RUNNING)
    finish = pb.FinishRunRequest(
        workspace=WORKSPACE, run_id="r", status=run_pb2.RUN_STATUS_STOPPED, status_detail="budget"
    )
    ended = (await client.runs.FinishRun(finish)).run
    assert (ended.status, ended.status_detail) == (run_pb2.RUN_STATUS_STOPPED, "budget")
    assert ended.HasField("finished_time")
    again = await register(client, "r", "baseline")
    assert not again.created
    assert again.run == first.run


@pytest.mark.parametrize("status", [run_pb2.RUN_STATUS_UNSPECIFIED, run_pb2.RUN_STATUS_RUNNING])
async def test_a_run_ends_only_with_a_status_that_ends_it(client: StoreClient, status: Any) -> None:
    await make_workspace(client)
    await register(client, "r")
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.runs.FinishRun(pb.FinishRunRequest(workspace=WORKSPACE, run_id="r", status=status))
    assert list(answer.fields) == ["status"]


@pytest.mark.parametrize(
    ("run", "field"),
    [
        (run_pb2.Run(run_id="", run_kind="train"), "run.run_id"),
        (run_pb2.Run(run_id="a\nb", run_kind="train"), "run.run_id"),
        (run_pb2.Run(run_id="../x", run_kind="train"), "run.run_id"),
        (run_pb2.Run(run_id="r", run_kind="holiday"), "run.run_kind"),
        (run_pb2.Run(run_id="r", run_kind="train", config_json="[1]"), "run.config_json"),
        (run_pb2.Run(run_id="r", run_kind="train", config_json="{"), "run.config_json"),
        (run_pb2.Run(run_id="r", run_kind="train", git_sha="\0"), "run.git_sha"),
    ],
)
async def test_qua_13_a_faulty_run_is_refused_by_field(client: StoreClient, run: run_pb2.Run, field: str) -> None:
    await make_workspace(client)
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.runs.RegisterRun(pb.RegisterRunRequest(workspace=WORKSPACE, run=run))
    assert list(answer.fields) == [field]


async def test_a_run_or_workspace_that_is_not_there_is_not_found(client: StoreClient) -> None:
    with refused(StatusCode.NOT_FOUND):
        await client.runs.GetRun(pb.GetRunRequest(workspace=WORKSPACE, run_id="r"))
    await make_workspace(client)
    with refused(StatusCode.NOT_FOUND):
        await client.runs.GetRun(pb.GetRunRequest(workspace=WORKSPACE, run_id="r"))


async def test_sto_12_gate_arms_are_left_out_of_runs_unless_asked_for(client: StoreClient) -> None:
    await make_workspace(client)
    for run_id, kind in (("b", "train"), ("a", "rollout"), ("b_e0_s0_gate_x_cand", "gate"), ("b_egate_s0", "rollout")):
        await register(client, run_id, kind)

    async def ids(**fields: Any) -> list[str]:
        answer = await client.runs.ListRuns(pb.ListRunsRequest(workspace=WORKSPACE, **fields))
        return [run.run_id for run in answer.runs]

    assert await ids() == ["b", "a", "b_egate_s0"]
    assert await ids(include_gate_runs=True) == ["b", "a", "b_e0_s0_gate_x_cand", "b_egate_s0"]
    assert await ids(run_kind="gate") == ["b_e0_s0_gate_x_cand"]
    first = await client.runs.ListRuns(pb.ListRunsRequest(workspace=WORKSPACE, page_size=2))
    assert await ids(page_size=2, page_token=first.next_page_token) == ["b_egate_s0"]


async def test_sto_5_writing_a_prediction_again_replaces_its_row(client: StoreClient) -> None:
    await make_workspace(client)
    await append(client, prediction("r", "q0", prediction="B", correct=False))
    await append(client, prediction("r", "q0", prediction="A"))
    request = pb.ListPredictionsRequest(workspace=WORKSPACE, run_id="r")
    assert [each.prediction for each in (await client.runs.ListPredictions(request)).predictions] == ["A"]


async def test_a_prediction_comes_back_field_by_field(client: StoreClient) -> None:
    await make_workspace(client)
    whole = prediction(
        "r",
        "q0",
        prediction="ein Text\nmit Ümlaut ✓",
        evidence=["a", "b"],
        prompt_tokens=2**40,
        completion_tokens=7,
        model_calls=3,
        cache_hits=1,
        error_detail="none",
        unit_id="u",
    )
    await append(client, whole)
    request = pb.ListPredictionsRequest(workspace=WORKSPACE, run_id="r")
    assert list((await client.runs.ListPredictions(request)).predictions) == [whole]
    request.brief = True
    (brief,) = (await client.runs.ListPredictions(request)).predictions
    whole.ClearField("steps_json")
    whole.ClearField("reasoning")
    assert brief == whole


async def test_new_traces_of_a_prediction_replace_all_older_ones(client: StoreClient) -> None:
    await make_workspace(client)
    await append(client, prediction("r", "q0"), *(trace("r", "q0", step, "old") for step in range(4)))
    await append(client, prediction("r", "q1"), trace("r", "q1", 0, "other"))
    await append(client, prediction("r", "q0"), *(trace("r", "q0", step, "new") for step in range(2)))
    answer = await client.runs.ListTraces(pb.ListTracesRequest(workspace=WORKSPACE, run_id="r"))
    assert [(each.question_id, each.step, each.output) for each in answer.traces] == [
        ("q0", 0, "new"),
        ("q0", 1, "new"),
        ("q1", 0, "other"),
    ]
    some = pb.ListTracesRequest(workspace=WORKSPACE, run_id="r", question_ids=["q1"])
    assert [each.question_id for each in (await client.runs.ListTraces(some)).traces] == ["q1"]


async def test_sto_12_gate_arms_are_left_out_of_predictions_unless_asked_for(client: StoreClient) -> None:
    await make_workspace(client)
    gate = "r_e0_s1_gate_action-reasoning_cand"
    await append(client, prediction("r_e0_s1", "q0"), prediction(gate, "q0"), prediction("rXgateX", "q0"))
    assert await listed(client) == [("rXgateX", "q0"), ("r_e0_s1", "q0")]
    assert await listed(client, gate) == [(gate, "q0")]
    assert len(await listed(client, include_gate_runs=True)) == 3


async def test_sto_13_predictions_are_paged_by_run_and_question_without_gap_or_repeat(client: StoreClient) -> None:
    await make_workspace(client)
    rows = [prediction(run, f"q{number:02}") for run in ("b", "a", "a_2") for number in range(7)]
    await append(client, *rows)
    seen, token = [], ""
    while True:
        request = pb.ListPredictionsRequest(workspace=WORKSPACE, page_size=4, page_token=token)
        answer = await client.runs.ListPredictions(request)
        seen += [(each.run_id, each.question_id) for each in answer.predictions]
        token = answer.next_page_token
        if not token:
            break
    assert seen == sorted((row.run_id, row.question_id) for row in rows)


async def test_predictions_of_chosen_questions(client: StoreClient) -> None:
    await make_workspace(client)
    await append(client, *(prediction("r", f"q{number}") for number in range(5)))
    assert await listed(client, "r", question_ids=["q3", "q1", "missing"]) == [("r", "q1"), ("r", "q3")]


async def test_predictions_are_streamed_in_messages_of_at_most_500(client: StoreClient) -> None:
    await make_workspace(client)
    await append(client, *(prediction("r", f"q{number:04}") for number in range(1001)))
    request = pb.StreamPredictionsRequest(workspace=WORKSPACE, run_id="r", brief=True)
    sizes, seen = [], []
    async for message in client.runs.StreamPredictions(request):
        sizes.append(len(message.predictions))
        seen += [each.question_id for each in message.predictions]
    assert sizes == [500, 500, 1]
    assert seen == [f"q{number:04}" for number in range(1001)]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"run_id": ""}, "predictions[1].run_id"),
        ({"question_id": ""}, "predictions[1].question_id"),
        ({"question_id": "x" * 513}, "predictions[1].question_id"),
        ({"steps_json": "[1,"}, "predictions[1].steps_json"),
        ({"reasoning": "a\0b"}, "predictions[1].reasoning"),
        ({"evidence": ["a\0b"]}, "predictions[1].evidence"),
    ],
)
async def test_qua_13_one_bad_prediction_writes_none_and_is_named(
    client: StoreClient, fields: dict[str, Any], field: str
) -> None:
    await make_workspace(client)
    bad = prediction("r", "q1")
    for name, value in fields.items():
        bad.ClearField(name)  # type: ignore[arg-type]
        getattr(bad, name).extend(value) if isinstance(value, list) else setattr(bad, name, value)
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await append(client, prediction("r", "q0"), bad)
    assert list(answer.fields) == [field]
    assert await listed(client) == []


def _call(number: int, **fields: Any) -> llm_call_pb2.LlmCall:
    values = {"call_id": f"c{number}", "role": "agent", "outcome": "OK", "attempts": 1, "cache_status": "miss"}
    return llm_call_pb2.LlmCall(**{**values, **fields})


async def test_model_calls_are_summed_over_a_run_and_its_parts(client: StoreClient) -> None:
    await make_workspace(client)
    calls = [
        _call(0, run_id="r", prompt_tokens=10, completion_tokens=1),
        _call(1, run_id="r_e0_s0", prompt_tokens=20, completion_tokens=2),
        _call(2, run_id="r_e0_s0"),
        _call(3, run_id="r2", prompt_tokens=40, completion_tokens=4),
        _call(4, run_id="r_e0_s0", role="judge", cache_status="hit"),
    ]
    request = pb.AppendLlmCallsRequest(workspace=WORKSPACE, calls=calls)
    for _ in range(2):
        assert (await client.runs.AppendLlmCalls(request)).call_count == 5
    summary = await client.runs.SummarizeLlmCalls(pb.SummarizeLlmCallsRequest(workspace=WORKSPACE, run_id="r"))
    assert list(summary.summaries) == [
        llm_call_pb2.LlmCallSummary(
            role="agent",
            outcome="OK",
            cache_status="miss",
            call_count=3,
            prompt_tokens=30,
            completion_tokens=3,
            unknown_usage_count=1,
        ),
        llm_call_pb2.LlmCallSummary(
            role="judge", outcome="OK", cache_status="hit", call_count=1, unknown_usage_count=1
        ),
    ]
    everything = await client.runs.SummarizeLlmCalls(pb.SummarizeLlmCallsRequest(workspace=WORKSPACE))
    assert sum(each.call_count for each in everything.summaries) == 5


async def test_model_calls_without_a_workspace_go_to_the_stores_own_log(client: StoreClient) -> None:
    timed = _call(
        0,
        latency_duration=Duration(seconds=1, nanos=500_000_000),
        started_time=Timestamp(seconds=1_700_000_000, nanos=1000),
    )
    await client.runs.AppendLlmCalls(pb.AppendLlmCallsRequest(calls=[timed]))
    summary = await client.runs.SummarizeLlmCalls(pb.SummarizeLlmCallsRequest())
    assert [each.call_count for each in summary.summaries] == [1]
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.runs.AppendLlmCalls(pb.AppendLlmCallsRequest(calls=[_call(1, call_id="")]))
    assert list(answer.fields) == ["calls[0].call_id"]
