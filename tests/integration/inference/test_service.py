"""INF-10, INF-11, CLI-4, QUA-14: the service over gRPC, in this process and as a child process."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
import urllib.request
from itertools import groupby
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc_health.v1 import health_pb2, health_pb2_grpc
from videotree.inference.v1 import chat_pb2, endpoint_pb2
from videotree.inference.v1 import model_service_pb2 as pb
from videotree.inference.v1.model_service_pb2_grpc import ModelServiceStub

from services.inference.config import InferenceConfig
from services.inference.main import build
from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.status import error_info, field_violations
from services.runtime.testing import free_port, local_server
from tests.builders.inference_parts import eventually
from tests.fakes.call_store import call_store
from tests.fakes.fake_upstream import (
    DONE,
    Hold,
    Pause,
    chunk,
    error_reply,
    event,
    fake_upstream,
    ok_reply,
    plain,
    stream,
)

ROOT = Path(__file__).parents[3]
KEY = "sk-planted-4f9c2e7711aa"


def call(text="hi", role=chat_pb2.ROLE_AGENT, image=None, **fields):
    parts = [chat_pb2.ContentPart(text=text)]
    if image is not None:
        parts.append(chat_pb2.ContentPart(image=chat_pb2.ImagePart(content=image, media_type="image/jpeg")))
    return chat_pb2.ChatCall(role=role, messages=[chat_pb2.Message(role="user", parts=parts)], **fields)


@contextlib.asynccontextmanager
async def service(tmp_path, up, store_port=1, **config):
    values = {
        "port": 0, "metrics_port": 0, "cache_dir": tmp_path / "cache", "store_address": f"127.0.0.1:{store_port}",
        "llm_base_url": up.base_url, "llm_model": "m", "llm_api_key": KEY, "retry_base_seconds": 0.0, **config,
    }  # fmt: skip
    settings = InferenceConfig(**values)
    async with (
        local_server("inference", await build(settings), settings) as running,
        open_channel(f"127.0.0.1:{running.port}", ClientCredentials()) as channel,
    ):
        yield ModelServiceStub(channel)


async def failure(awaitable):
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await awaitable
    return caught.value


async def test_inf_11_chat_and_stream_chat_answer_alike(tmp_path):
    calls = {"index": 0, "id": "t", "function": {"name": "f", "arguments": "{}"}}
    reply = stream(
        chunk(delta={"reasoning": "hm"}), chunk("Hel"), chunk("lo"), chunk(delta={"tool_calls": [calls]}), DONE
    )
    async with fake_upstream(reply) as up, service(tmp_path, up) as stub:
        whole = (await stub.Chat(pb.ChatRequest(call=call()))).result
        events = [e async for e in stub.StreamChat(pb.StreamChatRequest(call=call(salt="x")))]
        kinds = [kind for kind, _ in groupby(e.WhichOneof("event") for e in events)]
        assert kinds == ["reasoning_delta", "content_delta", "tool_call_delta", "result"]
        assert "".join(e.content_delta for e in events) == "Hello"
        last = events[-1].result
        for message in (whole, last):
            message.ClearField("first_token_duration")
            message.ClearField("largest_gap_duration")
            message.call_id = ""
        assert whole == last
        assert (whole.content, whole.reasoning, whole.tool_calls[0].name) == ("Hello", "hm", "f")
        hit = (await stub.Chat(pb.ChatRequest(call=call()))).result
        assert (hit.cache_status, hit.attempts, hit.endpoint) == (chat_pb2.CACHE_STATUS_HIT, 0, "llm")
        assert not hit.HasField("first_token_duration")


async def test_inf_11_embed_has_the_same_governance(tmp_path):
    body = json.dumps({
        "model": "emb", "usage": {"prompt_tokens": 4, "total_tokens": 4},
        "data": [{"index": 1, "embedding": [0.5, 1]}, {"index": 0, "embedding": [2, 3]}],
    }).encode()  # fmt: skip
    async with (
        fake_upstream(plain(body), error_reply(503)) as up,
        service(tmp_path, up, embed_llm_model="emb") as stub,
    ):
        request = pb.EmbedRequest(texts=["a", "b"])
        first, second = await stub.Embed(request), await stub.Embed(request)
        assert [list(e.values) for e in first.embeddings] == [[2, 3], [0.5, 1]]
        assert (first.cache_status, second.cache_status, up.calls) == (
            chat_pb2.CACHE_STATUS_MISS, chat_pb2.CACHE_STATUS_HIT, 2,
        )  # fmt: skip
        assert first.embeddings == second.embeddings
        up.default = plain(b'{"data": []}')
        error = await failure(stub.Embed(pb.EmbedRequest(texts=["c"])))
        assert (error.code(), error_info(error).reason) == (grpc.StatusCode.UNAVAILABLE, "UPSTREAM_TRANSIENT")
        error = await failure(stub.Embed(pb.EmbedRequest(texts=["a", ""])))
        assert list(field_violations(error)) == ["texts[1]"]


async def test_inf_1_embed_is_not_served_by_a_chat_model(tmp_path):
    async with fake_upstream() as up, service(tmp_path, up) as stub:
        error = await failure(stub.Embed(pb.EmbedRequest(texts=["a"])))
        assert (error.code(), up.calls) == (grpc.StatusCode.FAILED_PRECONDITION, 0)
        assert "EMBED_LLM_MODEL" in error.details()


async def test_inf_11_operators_see_and_steer_endpoints(tmp_path):
    async with fake_upstream() as up, service(tmp_path, up, judge_llm_model="j") as stub:
        await stub.Chat(pb.ChatRequest(call=call()))
        endpoints = (await stub.ListEndpoints(pb.ListEndpointsRequest())).endpoints
        assert [(e.name, e.model, e.attempt_count) for e in endpoints] == [("judge-llm", "j", 0), ("llm", "m", 1)]
        opened = await stub.ForceOpenBreaker(
            pb.ForceOpenBreakerRequest(endpoint="llm", open_duration=Duration(seconds=30))
        )
        assert opened.endpoint.breaker_state == endpoint_pb2.BREAKER_STATE_OPEN
        assert 29 <= opened.endpoint.retry_after_duration.seconds <= 30
        error = await failure(stub.Chat(pb.ChatRequest(call=call("other"))))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert 29 <= float(error_info(error).metadata["retry_after_seconds"]) <= 30
        assert (await stub.Chat(pb.ChatRequest(call=call()))).result.cache_status == chat_pb2.CACHE_STATUS_HIT
        await stub.ResetBreaker(pb.ResetBreakerRequest(endpoint="llm"))
        await stub.Chat(pb.ChatRequest(call=call("other")))
        for method, request in ((stub.ResetBreaker, pb.ResetBreakerRequest(endpoint="x")),
                                (stub.ForceOpenBreaker, pb.ForceOpenBreakerRequest(endpoint="x"))):  # fmt: skip
            assert (await failure(method(request))).code() is grpc.StatusCode.NOT_FOUND


async def test_inf_5_operators_see_extend_and_purge_the_cache(tmp_path):
    async with fake_upstream() as up, service(tmp_path, up, redis_cache_ttl=1000) as stub:
        for salt in ("a", "b"):
            await stub.Chat(pb.ChatRequest(call=call(salt=salt)))
        await stub.Chat(pb.ChatRequest(call=call(salt="a")))
        await stub.Chat(pb.ChatRequest(call=call()))
        stats = await stub.GetCacheStats(pb.GetCacheStatsRequest())
        assert (stats.backend, stats.entry_count, stats.hit_count, stats.miss_count) == ("disk", 3, 1, 3)
        assert stats.ttl_duration.seconds == 1000
        extended = await stub.ExtendCache(pb.ExtendCacheRequest(ttl_duration=Duration(seconds=5000)))
        assert (extended.extended_count, extended.entry_count) == (3, 3)
        assert (await stub.PurgeCache(pb.PurgeCacheRequest(salt="a"))).purged_count == 1
        assert (await stub.PurgeCache(pb.PurgeCacheRequest())).purged_count == 1
        assert (await stub.Chat(pb.ChatRequest(call=call(salt="b")))).result.cache_status == chat_pb2.CACHE_STATUS_HIT
        for duration in (Duration(), Duration(seconds=-1), Duration(seconds=1, nanos=5)):
            error = await failure(stub.ExtendCache(pb.ExtendCacheRequest(ttl_duration=duration)))
            assert list(field_violations(error)) == ["ttl_duration"]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (chat_pb2.ChatCall(), "call.role"),
        (call(role=99), "call.role"),
        (call(role=chat_pb2.ROLE_EMBED), "call.role"),
        (call(cache_mode=77), "cache_mode"),
        (call(parameters_json="{"), "call.parameters_json"),
        (call(parameters_json="[]"), "call.parameters_json"),
        (call(parameters_json="null"), "call.parameters_json"),
        (call(parameters_json='{"stream": true}'), "parameters.stream"),
        (call(response_format_json="3"), "call.response_format_json"),
        (call(tools_json="{}"), "call.tools_json"),
        (call(tools_json="[1]"), "call.tools_json"),
        (chat_pb2.ChatCall(role=1), "messages"),
        (chat_pb2.ChatCall(role=1, messages=[chat_pb2.Message(role="x")]), "messages[0].role"),
        (chat_pb2.ChatCall(role=1, messages=[chat_pb2.Message(role="user", parts=[chat_pb2.ContentPart()])]),
         "call.messages[0].parts[0]"),
        (call(image=b""), "call.messages[0].parts[1].image"),
    ],
)  # fmt: skip
async def test_qua_13_a_bad_field_is_named_and_nothing_is_sent(tmp_path, bad, field):
    async with fake_upstream() as up, service(tmp_path, up) as stub:
        for attempt in (stub.Chat(pb.ChatRequest(call=bad)), _drain(stub.StreamChat(pb.StreamChatRequest(call=bad)))):
            error = await failure(attempt)
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert list(field_violations(error)) == [field]
        assert up.calls == 0


async def _drain(events):
    return [e async for e in events]


async def test_inf_9_a_grpc_deadline_of_one_second_against_ten(tmp_path):
    async with fake_upstream([Pause(10), *ok_reply()]) as up, service(tmp_path, up) as stub:
        start = time.monotonic()
        error = await failure(stub.Chat(pb.ChatRequest(call=call()), timeout=1))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert 0.9 < time.monotonic() - start < 1.5
        await eventually(lambda: up.open_connections == 0, 1)
        await asyncio.sleep(0.5)
        endpoint = (await stub.ListEndpoints(pb.ListEndpointsRequest())).endpoints[0]
        assert (up.calls, endpoint.in_flight, endpoint.consecutive_failures) == (1, 0, 0)


async def test_inf_9_a_cancelled_rpc_closes_the_upstream_within_a_second(tmp_path):
    async with fake_upstream(stream(chunk("a"), Hold(), end=False)) as up, service(tmp_path, up) as stub:
        unary = stub.Chat(pb.ChatRequest(call=call("u")))
        streaming = stub.StreamChat(pb.StreamChatRequest(call=call("s")))
        assert (await streaming.read()).content_delta == "a"
        await eventually(lambda: up.running == 2)
        unary.cancel()
        streaming.cancel()
        await eventually(lambda: up.open_connections == 0, 1)


async def test_inf_11_a_client_that_reads_slowly_holds_no_slot_and_gets_the_rest_in_few_messages(tmp_path):
    texts = [f"{n:05d} " * 50 for n in range(4000)]  # 1.2 MB: more than the connection takes unread
    reply = stream(*(b"".join(map(chunk, texts[i : i + 50])) for i in range(0, 4000, 50)), chunk(None, "stop"))
    async with fake_upstream(reply) as up, service(tmp_path, up) as stub:
        streaming = aiter(stub.StreamChat(pb.StreamChatRequest(call=call())))
        events = [await anext(streaming)]
        await eventually(lambda: up.running == 0, 20)  # the upstream is done, though nobody reads on
        (state,) = (await stub.ListEndpoints(pb.ListEndpointsRequest())).endpoints
        assert (state.in_flight, state.waiting) == (0, 0)
        events += [event async for event in streaming]
        assert "".join(event.content_delta for event in events) == events[-1].result.content == "".join(texts)
        assert len(events) < len(texts) / 10


async def test_inf_4_a_stream_that_broke_after_a_delta_is_aborted(tmp_path):
    async with fake_upstream(stream(chunk("a"), Pause(0.1))) as up, service(tmp_path, up) as stub:
        error = await failure(_drain(stub.StreamChat(pb.StreamChatRequest(call=call()))))
        assert (error.code(), error_info(error).reason) == (grpc.StatusCode.ABORTED, "STREAM_INTERRUPTED")
        assert error_info(error).metadata["outcome"] == "truncated"


async def test_inf_11_twenty_mebibytes_are_accepted_and_forty_refused_clearly(tmp_path):
    async with fake_upstream() as up, service(tmp_path, up) as stub:
        image = os.urandom(20 * 2**20)
        answer = await stub.Chat(pb.ChatRequest(call=call(role=chat_pb2.ROLE_VISION, image=image)))
        assert answer.result.content == "Hello"
        assert (
            up.requests[0].json["messages"][0]["content"][1]["image_url"]["url"].startswith("data:image/jpeg;base64,")
        )
        error = await failure(stub.Chat(pb.ChatRequest(call=call(image=image + image))))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "32 MiB" in error.details()
        assert up.calls == 1


async def test_inf_6_the_vision_role_carries_the_salt(tmp_path):
    async with fake_upstream() as up, service(tmp_path, up, seed_from_salt=True) as stub:
        vision = {"role": chat_pb2.ROLE_VISION, "image": b"jpg"}
        for salt in ("run:e0", "run:e1", "run:e0"):
            await stub.Chat(pb.ChatRequest(call=call(**vision, salt=salt)))
        await stub.Chat(pb.ChatRequest(call=call(**vision)))
        seeds = [seen.json.get("seed") for seen in up.requests]
        assert len(seeds) == len(set(seeds)) == 3
        assert seeds[2] is None


async def test_inf_10_each_logical_call_makes_a_row_off_the_calls_path(tmp_path):
    async with fake_upstream() as up, call_store() as store, service(tmp_path, up, store.port) as stub:
        origin = {"workspace": "w", "run_id": "r_e0_s0", "parent_call": "q1"}
        answers = [(await stub.Chat(pb.ChatRequest(call=call(**origin)))).result for _ in range(2)]
        up.default = error_reply(400)
        await failure(stub.Chat(pb.ChatRequest(call=call("bad", **origin))))
        await failure(stub.Chat(pb.ChatRequest(call=call("lost", workspace="unknown"))))
        await eventually(lambda: len(store.rows.get("w", ())) == 3)
        rows = store.rows["w"]
        assert [r.call_id for r in rows[:2]] == [a.call_id for a in answers]
        assert [(r.outcome, r.cache_status, r.attempts, r.endpoint) for r in rows] == [
            ("OK", "miss", 1, "llm"), ("OK", "hit", 0, ""), ("PERMANENT", "miss", 1, "llm"),
        ]  # fmt: skip
        assert [(r.prompt_tokens, r.completion_tokens, r.HasField("prompt_tokens")) for r in rows[::2]] == [
            (7, 3, True), (0, 0, False),
        ]  # fmt: skip
        assert {(r.role, r.run_id, r.parent_call) for r in rows} == {("agent", "r_e0_s0", "q1")}
        assert rows[0].HasField("first_token_duration")
        assert abs(rows[0].started_time.seconds - time.time()) < 60


async def test_inf_10_rows_wait_for_a_store_that_is_away_and_are_flushed_on_stop(tmp_path):
    async with fake_upstream() as up, call_store() as store:
        store.away = True
        async with service(tmp_path, up, store.port) as stub:
            start = time.monotonic()
            for n in range(30):
                await stub.Chat(pb.ChatRequest(call=call(str(n))))
            assert time.monotonic() - start < 3
            await eventually(lambda: store.requests > 0)
            store.away = False
        assert len(store.rows[""]) == 30


class Child:
    """The service as a child process."""

    def __init__(self, process, port, metrics_port):
        self.process, self.port, self.metrics_port = process, port, metrics_port

    async def stopped(self, seconds=30):
        """Exit code and everything it wrote, after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        out, err = await asyncio.wait_for(self.process.communicate(), seconds)
        return self.process.returncode, (out + err).decode()


@contextlib.asynccontextmanager
async def child(tmp_path, up, store_port=1, **variables):
    port, metrics_port = free_port(), free_port()
    environment = {
        **os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}", "VIDEOTREE_CONFIG": os.devnull,
        "LLM_BASE_URL": up.base_url, "LLM_MODEL": "m", "LLM_API_KEY": KEY, "VIDEOTREE_CACHE_DIR": str(tmp_path / "c"),
        "VIDEOTREE_STORE_ADDRESS": f"127.0.0.1:{store_port}", "VIDEOTREE_INFERENCE_RETRY_BASE_SECONDS": "0",
        **variables,
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.inference.main", "--port", str(port), "--metrics-port", str(metrics_port),
        cwd=tmp_path, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with open_channel(f"127.0.0.1:{port}", ClientCredentials()) as channel:
            await asyncio.wait_for(channel.channel_ready(), 20)
            yield Child(process, port, metrics_port), channel
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_cli_4_sigterm_says_not_serving_lets_twenty_streams_finish_and_exits_0(tmp_path):
    reply = stream(chunk("a"), Pause(1.5), chunk("b"), chunk(None, "stop"))
    async with fake_upstream(reply) as up, child(tmp_path, up) as (process, channel):
        stub, order = ModelServiceStub(channel), []

        async def read(n):
            texts = [e.content_delta async for e in stub.StreamChat(pb.StreamChatRequest(call=call(str(n))))]
            order.append("stream")
            return texts[:2]

        async def watch():
            name = health_pb2.HealthCheckRequest(service="videotree.inference.v1.ModelService")
            with contextlib.suppress(grpc.aio.AioRpcError):
                async for answer in health_pb2_grpc.HealthStub(channel).Watch(name):
                    status = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
                    order.append(status)

        watching = asyncio.create_task(watch())
        streams = [asyncio.create_task(read(n)) for n in range(20)]
        await eventually(lambda: up.running == 20, 10)
        code, _ = await process.stopped()
        assert await asyncio.gather(*streams) == [["a", "b"]] * 20
        await watching
        assert code == 0
        assert order[:2] == ["SERVING", "NOT_SERVING"]
        assert order[2:] == ["stream"] * 20


@pytest.mark.parametrize(
    "answer",
    [
        stream(chunk(f"Your key is {KEY[:9]}"), chunk(f"{KEY[9:]}."), chunk(None, "stop"), DONE),
        stream(chunk(delta={"reasoning_content": f"The key: {KEY}"}), chunk("b", "stop"), DONE),
        stream(event({"model": KEY, "choices": [{"index": 0, "delta": {"content": "a"}}]}), DONE),
        stream(chunk("a", KEY), DONE),
        stream(
            chunk(delta={"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": KEY}}]}), DONE
        ),
    ],
    ids=["text", "reasoning", "model", "finish reason", "tool call"],
)
async def test_qua_14_an_answer_that_repeats_the_key_is_no_answer(tmp_path, answer):
    async with (
        fake_upstream(answer) as up,
        call_store() as store,
        child(tmp_path, up, store.port) as (process, channel),
    ):
        stub = ModelServiceStub(channel)
        for _ in range(2):
            error = await failure(stub.Chat(pb.ChatRequest(call=call())))
            assert "repeats the API key" in error.details()
            assert KEY[:12] not in f"{error.details()} {error.trailing_metadata()}"
        assert up.calls == 2  # nothing was cached, and nothing was tried again
        up.default = ok_reply(KEY[:-1])
        assert (await stub.Chat(pb.ChatRequest(call=call()))).result.content == KEY[:-1]
        await process.stopped()
    assert KEY not in str(store.rows)


async def test_qua_14_a_planted_key_is_in_no_log_row_error_or_metric(tmp_path):
    echoing = [
        error_reply(401, message=f"Incorrect API key provided: {KEY}"),
        error_reply(401, message="x" * 480 + KEY),
        plain(f"<html>{KEY}</html>".encode(), "502 Bad Gateway", "text/html"),
        plain(f"<html>{KEY}</html>".encode(), "200 OK", "text/html"),
        stream(event({"error": {"message": f"denied {KEY}", "code": KEY}})),
        stream(event(f"garbage {KEY}".encode())),
        stream(chunk("a"), Pause(0.05), event({"error": {"message": KEY, "code": 500}})),
    ]
    async with fake_upstream() as up, call_store() as store:
        variables = {"VIDEOTREE_INFERENCE_MAX_ATTEMPTS": "1", "VIDEOTREE_INFERENCE_LOG_LEVEL": "DEBUG"}
        async with child(tmp_path, up, store.port, **variables) as (process, channel):
            stub, seen = ModelServiceStub(channel), []
            for n, reply in enumerate(echoing):
                up.default = reply
                for attempt in (stub.Chat(pb.ChatRequest(call=call(str(n)))),
                                _drain(stub.StreamChat(pb.StreamChatRequest(call=call(f"s{n}"))))):  # fmt: skip
                    error = await failure(attempt)
                    seen += [error.details(), str(error.trailing_metadata()), str(error_info(error))]
                await stub.ResetBreaker(pb.ResetBreakerRequest(endpoint="llm"))
            seen.append(str((await stub.ListEndpoints(pb.ListEndpointsRequest())).endpoints))
            url = f"http://127.0.0.1:{process.metrics_port}/metrics"
            metrics = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
            seen.append(metrics)
            code, log = await process.stopped()
            seen += [log, str(store.rows)]
        assert code == 0
        assert sum(map(len, store.rows.values())) == 2 * len(echoing)
        assert all(f"Bearer {KEY}" in request.head for request in up.requests)
        assert "videotree_model_calls_total" in metrics
        # Also no beginning of it that a shortened text could have left.
        assert all(KEY[:12] not in text for text in seen)
        for path in tmp_path.rglob("*"):
            assert path.is_dir() or KEY.encode() not in path.read_bytes()
