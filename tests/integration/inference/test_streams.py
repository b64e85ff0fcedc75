"""INF-3: streams byte by byte, against a real HTTP server."""

import asyncio
import json
import time

import pytest

from services.inference.domain import completion_stream
from services.inference.domain.chat import CacheStatus, ChatResult, ToolCall, Usage
from services.inference.domain.endpoint import Timeouts
from services.inference.domain.errors import (
    StreamInterrupted,
    UpstreamRejected,
    UpstreamTransient,
    UpstreamTruncated,
)
from services.inference.domain.outcome import Outcome
from tests.builders.inference_parts import endpoint, governed, request
from tests.fakes.fake_upstream import (
    DONE,
    END,
    USAGE_EVENT,
    Close,
    Hold,
    Pause,
    Reset,
    chunk,
    event,
    fake_upstream,
    framed,
    head,
    ok_reply,
    plain,
    stream,
)


async def test_inf_3_a_clean_end_without_a_terminal_signal_is_truncated_retried_and_never_cached(tmp_path):
    async with fake_upstream(stream(chunk("Hel"))) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        with pytest.raises(UpstreamTruncated):
            await model.chat(request())
        assert up.calls == 4
        assert model.observer.attempts == [("e1", Outcome.TRUNCATED)] * 4
        assert model.status().consecutive_failures == 4
        up.default = ok_reply()
        answer = await model.chat(request())
        assert (answer.content, answer.cache_status, up.calls) == ("Hello", CacheStatus.MISS, 5)
    assert [r.outcome for r in model.observer.records] == [Outcome.TRUNCATED, Outcome.OK]


@pytest.mark.parametrize(
    "body",
    [
        [chunk("Hel"), chunk("lo"), chunk(None, "stop")],
        [chunk("Hel"), chunk("lo"), DONE],
        [chunk("Hel"), chunk("lo", "stop")],
        [chunk("Hel"), chunk("lo"), b"data: [DONE]"],
        [chunk("Hel"), chunk("lo"), b"data:[DONE]\n\n"],
    ],
)
async def test_inf_3_either_terminal_signal_completes_the_answer(tmp_path, body):
    async with fake_upstream(stream(*body)) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        answer = await model.chat(request())
        assert answer.content == "Hello"
        assert (await model.chat(request())).cache_status is CacheStatus.HIT
        assert up.calls == 1


def _delta(text):
    return json.dumps({"choices": [{"delta": {"content": text}}]}, ensure_ascii=False).encode()


ODD_TEXT = "漢字 😀\u2028line\u0085next é\r\n"
ODD_STREAM = (
    b"\xef\xbb\xbf: a comment\r\n\r\nevent: message\r\nid: 1\r\ndata:"
    + _delta("漢字 ")
    + b"\r\n\r\n\n\n: another\n"
    + b'data: {"choices": [{"delta":\rdata: {"content": "\xf0\x9f\x98\x80"}}]}\r\rdata: '
    + _delta("\u2028line\u0085next é\r\n")
    + b'\n\nretry: 5\ndata:{"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
)


async def test_inf_3_the_text_is_the_same_wherever_the_bytes_are_cut(tmp_path):
    cuts = iter(range(1, len(ODD_STREAM)))

    def reply(_):
        cut = next(cuts)
        return [head(), framed(ODD_STREAM[:cut]), Pause(0.001), framed(ODD_STREAM[cut:]), END]

    async with fake_upstream(reply) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        for number in range(1, len(ODD_STREAM)):
            answer = await model.chat(request(str(number)))
            assert answer.content == ODD_TEXT, f"cut at byte {number}"
        assert up.calls == len(ODD_STREAM) - 1


@pytest.mark.parametrize(
    ("reply", "code", "error"),
    [
        (stream(event({"error": {"message": "busy", "code": 503}})), "503", UpstreamTransient),
        (stream(event({"error": {"message": "bad", "code": 400}})), "400", UpstreamRejected),
        (stream(chunk("a"), event({"error": {"type": "server_error"}})), "server_error", UpstreamTransient),
        (stream(event({"object": "error", "message": "x", "code": 404})), "404", UpstreamRejected),
        (stream(b'event: error\ndata: {"message": "broken", "code": 500}\n\n'), "500", UpstreamTransient),
        (stream(chunk("a"), b"event: error\ndata: it broke\n\n", DONE), "error", UpstreamTransient),
        (stream(chunk("a"), event(b'{"choices": [{"delta": {"cont')), "malformed", UpstreamTransient),
        (plain(b"<html>login</html>", "200 OK", "text/html"), "not_a_stream", UpstreamTransient),
        (plain(b"<html>login</html>", "200 OK", "text/event-stream"), "not_a_stream", UpstreamTransient),
        (plain(b"", "200 OK", "text/event-stream"), "empty_body", UpstreamTransient),
        (stream(), "empty_body", UpstreamTransient),
        (plain(b'{"choices": [{"message": {"content": "whole"}}]}'), "not_a_stream", UpstreamTransient),
        (plain(b'{"error": {"message": "no", "code": "model_not_found"}}'), "model_not_found", UpstreamRejected),
        (plain(b'{"error": {"message": "no", "code": 429}}', "200 OK", "text/event-stream"), "429", UpstreamTransient),
    ],
)  # fmt: skip
async def test_inf_3_an_error_in_a_body_is_an_error_with_its_code_and_is_not_cached(tmp_path, reply, code, error):
    async with fake_upstream(reply) as up, governed(tmp_path, endpoint(up.base_url), max_attempts=1) as model:
        with pytest.raises(error) as caught:
            await model.chat(request())
        assert caught.value.code == code
        assert caught.value.metadata["upstream_code"] == code
        up.default = ok_reply()
        if error is UpstreamRejected:
            assert model.status().consecutive_failures == 0
        assert (await model.chat(request())).cache_status is CacheStatus.MISS


async def test_inf_3_nothing_but_comments_is_truncated(tmp_path):
    async with fake_upstream(stream(b": ping\n\n")) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        with pytest.raises(UpstreamTruncated):
            await model.chat(request())


async def test_inf_3_after_the_terminal_signal_usage_is_read_and_the_rest_ignored_promptly(tmp_path):
    reply = stream(chunk("Hi"), chunk(None, "stop"), USAGE_EVENT, DONE, b"\xff garbage \n\n", Hold(), end=False)
    async with fake_upstream(reply) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        start = time.monotonic()
        answer = await model.chat(request())
        assert time.monotonic() - start < 0.4
        assert (answer.content, answer.usage) == ("Hi", Usage(7, 3, 10))
        assert model.status().in_flight == 0


@pytest.mark.parametrize("late", [Hold(), Reset(), Close()])
async def test_inf_3_what_happens_after_a_finish_reason_spoils_nothing_and_costs_half_a_second(tmp_path, late):
    reply = stream(chunk("Hi"), chunk(None, "stop"), Pause(0.05), late, end=False)
    async with fake_upstream(reply) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        start = time.monotonic()
        answer = await model.chat(request())
        assert time.monotonic() - start < 0.9
        assert (answer.content, answer.usage, answer.finish_reason) == ("Hi", None, "stop")
        assert up.calls == 1


async def test_inf_3_reasoning_null_content_and_tool_calls_are_kept_and_a_hit_equals_a_miss(tmp_path):
    calls = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": '{"x"'}},
        {"function": {"arguments": ": 1}"}},
        {"index": 0, "id": "b", "function": {"name": "look", "arguments": "{}"}},
        {"id": "c", "function": {"name": "end", "arguments": {"y": 2}}},
    ]
    reply = stream(
        chunk(delta={"role": "assistant", "content": None}),
        chunk(delta={"content": None, "reasoning_content": "Let me "}),
        chunk(delta={"reasoning": "think."}),
        *(chunk(delta={"tool_calls": [call]}) for call in calls),
        chunk(None, "tool_calls"),
        USAGE_EVENT,
        DONE,
    )
    async with fake_upstream(reply) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        miss, hit = await model.chat(request()), await model.chat(request())
        assert miss.content == ""
        assert miss.reasoning == "Let me think."
        assert miss.tool_calls == (
            ToolCall("a", "look", '{"x": 1}'), ToolCall("b", "look", "{}"), ToolCall("c", "end", '{"y":2}'),
        )  # fmt: skip
        assert (hit.completion, hit.endpoint) == (miss.completion, miss.endpoint)
        assert (miss.cache_status, hit.cache_status, up.calls) == (CacheStatus.MISS, CacheStatus.HIT, 1)


async def test_inf_5_an_answer_cut_by_length_is_complete_but_not_cached(tmp_path):
    async with (
        fake_upstream(stream(chunk("Hel"), chunk(None, "length"), USAGE_EVENT, DONE)) as up,
        governed(tmp_path, endpoint(up.base_url)) as model,
    ):
        first, second = await model.chat(request()), await model.chat(request())
        assert first.finish_reason == second.finish_reason == "length"
        assert (second.cache_status, up.calls) == (CacheStatus.MISS, 2)


@pytest.mark.parametrize("tokens", [0, 1, 5])
async def test_inf_4_a_reset_after_some_tokens_is_retried_silently_for_a_unary_call(tmp_path, tokens):
    broken = stream(*(chunk(f"{i} ") for i in range(tokens)), Pause(0.01), Reset(), end=False)
    async with fake_upstream(ok_reply("whole"), broken) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        answer = await model.chat(request())
        assert (answer.content, answer.attempts, up.calls) == ("whole", 2, 2)
        assert model.observer.attempts == [("e1", Outcome.TRANSIENT), ("e1", Outcome.OK)]


async def test_inf_4_a_stream_that_has_delivered_ends_with_an_error_and_repeats_nothing(tmp_path):
    broken = stream(chunk("one "), chunk("two "), Pause(0.05), Reset(), end=False)
    async with fake_upstream(ok_reply("whole"), broken) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        got = []

        async def read():
            async for delta in model.stream_chat(request()):
                got.append(delta.content)  # noqa: PERF401 -- the stream fails on the way

        with pytest.raises(StreamInterrupted):
            await read()
        assert "".join(got) == "one two "
        assert up.calls == 1


async def test_inf_4_a_stream_that_has_delivered_nothing_is_retried_silently(tmp_path):
    broken = stream(Pause(0.02), Reset(), end=False)
    async with fake_upstream(ok_reply("a", "b"), broken) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        events = [event async for event in model.stream_chat(request())]
        assert "".join(e.content for e in events[:-1]) == "ab"
        assert isinstance(events[-1], ChatResult)
        assert (events[-1].content, events[-1].attempts, up.calls) == ("ab", 2, 2)


async def test_inf_11_a_stream_from_the_cache_gives_the_whole_answer(tmp_path):
    async with fake_upstream() as up, governed(tmp_path, endpoint(up.base_url)) as model:
        first = [event async for event in model.stream_chat(request())]
        again = [event async for event in model.stream_chat(request())]
        assert "".join(e.content for e in first[:-1]) == first[-1].content == "Hello"
        assert [e.content for e in again] == ["Hello", "Hello"]
        assert again[-1].cache_status is CacheStatus.HIT
        assert again[-1].completion == first[-1].completion
        assert up.calls == 1


async def test_inf_3_time_to_first_token_and_largest_gap_are_measured_and_comments_are_no_tokens(tmp_path):
    reply = stream(b": ping\n\n", Pause(0.1), chunk("a"), Pause(0.2), chunk("b"), chunk("c"), DONE)
    async with fake_upstream(reply) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        timing = (await model.chat(request())).timing
        assert 0.09 < timing.first_token_seconds < 0.19
        assert 0.19 < timing.largest_gap_seconds < 0.35
        assert timing.total_seconds >= timing.first_token_seconds + timing.largest_gap_seconds


@pytest.mark.parametrize(
    ("steps", "waited_for"),
    [
        ([b": ping\n\n", Pause(0.15), b": ping\n\n", Pause(0.15), b": ping\n\n", Hold()], "first token"),
        ([chunk("a"), Pause(0.1), b": ping\n\n", Pause(0.15), b": ping\n\n", Hold()], "next token"),
    ],
)
async def test_inf_9_comments_reset_neither_token_clock(tmp_path, steps, waited_for):
    timeouts = Timeouts(connect=1, first_token=0.2, between_tokens=0.2, total=5)
    async with (
        fake_upstream(stream(*steps, end=False)) as up,
        governed(tmp_path, endpoint(up.base_url, timeouts=timeouts), max_attempts=1) as model,
    ):
        start = time.monotonic()
        with pytest.raises(UpstreamTransient, match=waited_for):
            await model.chat(request())
        assert time.monotonic() - start < 0.6


async def test_inf_9_the_total_timeout_ends_a_stream_that_never_stops(tmp_path):
    timeouts = Timeouts(connect=1, first_token=1, between_tokens=1, total=0.3)
    endless = stream(*[step for _ in range(100) for step in (chunk("x"), Pause(0.02))], Hold(), end=False)
    async with (
        fake_upstream(endless) as up,
        governed(tmp_path, endpoint(up.base_url, timeouts=timeouts), max_attempts=1) as model,
    ):
        start = time.monotonic()
        with pytest.raises(UpstreamTransient, match="next token"):
            await model.chat(request())
        assert 0.25 < time.monotonic() - start < 0.7
        await asyncio.sleep(0.1)
        assert up.open_connections == 0


async def test_inf_3_an_answer_without_end_is_a_fault_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(completion_stream, "_MAX_ANSWER_CHARS", 1000)
    endless = stream(*(chunk("word " * 10) for _ in range(200)), end=False)
    async with (
        fake_upstream(endless) as up,
        governed(tmp_path, endpoint(up.base_url), max_attempts=1) as model,
    ):
        with pytest.raises(UpstreamTransient) as caught:
            await model.chat(request())
        assert caught.value.code == "too_long"
        up.script.append(ok_reply("x" * 1000))
        assert len((await model.chat(request())).content) == 1000
