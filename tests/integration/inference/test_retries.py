"""INF-2, INF-4: outcomes, retries and `Retry-After`, against a real HTTP server."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from services.inference.domain.chat import CacheStatus, Role
from services.inference.domain.errors import (
    DeadlineExceeded,
    EndpointsUnavailable,
    UpstreamRejected,
    UpstreamTransient,
)
from services.inference.domain.outcome import Outcome
from tests.builders.inference_parts import endpoint, governed, request
from tests.fakes.fake_upstream import Hold, Reset, chunk, error_reply, fake_upstream, ok_reply, plain, stream


def now():
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 302])
async def test_inf_4_a_permanent_status_is_one_call_and_leaves_the_breaker_alone(tmp_path, status):
    async with fake_upstream(error_reply(status)) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        with pytest.raises(UpstreamRejected) as caught:
            await model.chat(request())
        assert (up.calls, caught.value.code) == (1, str(status))
        assert model.observer.attempts == [("e1", Outcome.PERMANENT)]
        assert (model.status().consecutive_failures, model.status().breaker_state) == (0, "closed")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
async def test_inf_4_a_transient_status_is_retried(tmp_path, status):
    async with (
        fake_upstream(ok_reply(), error_reply(status), error_reply(status)) as up,
        governed(tmp_path, endpoint(up.base_url)) as model,
    ):
        answer = await model.chat(request())
        assert (answer.content, answer.attempts, up.calls) == ("Hello", 3, 3)
        assert model.status().consecutive_failures == 0


@pytest.mark.parametrize(
    "broken",
    [[Reset()], [b"not http at all\r\n\r\n"], [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"]],
)
async def test_inf_4_a_broken_connection_is_transient(tmp_path, broken):
    async with fake_upstream(ok_reply(), broken) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        assert (await model.chat(request())).attempts == 2
        assert model.observer.attempts[0] == ("e1", Outcome.TRANSIENT)


async def test_inf_4_a_refused_connection_is_transient(tmp_path):
    async with governed(tmp_path, endpoint("http://127.0.0.1:1/v1"), max_attempts=2) as model:
        with pytest.raises(UpstreamTransient):
            await model.chat(request())
        assert model.observer.attempts == [("e1", Outcome.TRANSIENT)] * 2


async def test_inf_4_a_body_shorter_than_its_length_is_transient(tmp_path):
    short = plain(b"data: [DO", "200 OK", "text/event-stream")
    short[0] = short[0].replace(b"content-length: 9", b"content-length: 90")
    async with (
        fake_upstream(ok_reply(), [*short, Reset()]) as up,
        governed(tmp_path, endpoint(up.base_url)) as model,
    ):
        assert (await model.chat(request())).content == "Hello"
        assert up.calls == 2


@pytest.mark.parametrize(
    ("header", "least", "most"), [("1", 0.99, 1.6), ("-5", 0, 0.3), ("inf", 0, 0.3), ("x", 0, 0.3)]
)
async def test_inf_4_retry_after_is_honoured_when_it_makes_sense(tmp_path, header, least, most):
    async with (
        fake_upstream(ok_reply(), error_reply(429, f"retry-after: {header}")) as up,
        governed(tmp_path, endpoint(up.base_url)) as model,
    ):
        await model.chat(request(), deadline=now() + 5)
        waited = up.requests[1].arrived - up.requests[0].arrived
        assert least <= waited < most


async def test_inf_4_retry_after_two_seconds_and_as_a_date(tmp_path):
    def dated(_):
        when = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
        return error_reply(503, f"retry-after: {when}")

    async with (
        fake_upstream(ok_reply(), error_reply(503, "retry-after: 2"), dated) as up,
        governed(tmp_path, endpoint(up.base_url)) as model,
    ):
        await model.chat(request(), deadline=now() + 10)
        first, second, third = (seen.arrived for seen in up.requests)
        assert 1.99 <= second - first < 2.6
        assert 0.99 <= third - second < 2.6  # a date has whole seconds


@pytest.mark.parametrize("header", ["9999", "6"])
async def test_inf_4_a_retry_after_beyond_the_deadline_fails_now(tmp_path, header):
    async with (
        fake_upstream(error_reply(429, f"retry-after: {header}")) as up,
        governed(tmp_path, endpoint(up.base_url)) as model,
    ):
        start = time.monotonic()
        with pytest.raises(UpstreamTransient) as caught:
            await model.chat(request(), deadline=now() + 5)
        assert time.monotonic() - start < 0.5
        assert (caught.value.code, up.calls) == ("429", 1)


async def test_inf_4_the_wait_grows_with_full_jitter_and_stays_inside_the_deadline(tmp_path):
    async with (
        fake_upstream(error_reply(503)) as up,
        governed(tmp_path, endpoint(up.base_url), retry_base_seconds=0.4, max_attempts=50, fail_threshold=100) as model,
    ):
        start = time.monotonic()
        with pytest.raises((UpstreamTransient, DeadlineExceeded)):
            await model.chat(request(), deadline=now() + 1)
        assert time.monotonic() - start < 1.2
        assert up.calls >= 2


async def test_inf_9_a_deadline_of_a_second_ends_the_call_then_and_nothing_comes_after(tmp_path):
    async with (
        fake_upstream(stream(Hold(), end=False)) as up,
        governed(tmp_path, endpoint(up.base_url)) as model,
    ):
        start = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            await model.chat(request(), deadline=now() + 1)
        assert 0.95 < time.monotonic() - start < 1.4
        await asyncio.sleep(0.3)
        assert (up.calls, up.open_connections, model.status().in_flight) == (1, 0, 0)
        assert model.observer.attempts == [("e1", Outcome.CANCELLED)]
        assert model.status().consecutive_failures == 0
        assert [r.outcome for r in model.observer.records] == [Outcome.CANCELLED]


async def test_inf_1_endpoints_are_tried_in_order_and_a_transient_failure_moves_on(tmp_path):
    async with fake_upstream(error_reply(503)) as first, fake_upstream(ok_reply("second")) as second:
        a, b = endpoint(first.base_url, "a"), endpoint(second.base_url, "b")
        async with governed(tmp_path, a, b, fail_threshold=2, cooldown_seconds=60) as model:
            for number in range(4):
                answer = await model.chat(request(str(number)))
                assert (answer.content, answer.endpoint) == ("second", "b")
            assert (first.calls, second.calls) == (2, 4)  # then the first one's breaker is open
            first.default = ok_reply("first")
            model.parts.operations.reset("a")
            assert (await model.chat(request("5"))).endpoint == "a"


async def test_inf_1_a_permanent_failure_does_not_move_on(tmp_path):
    async with fake_upstream(error_reply(400)) as first, fake_upstream() as second:
        async with governed(tmp_path, endpoint(first.base_url, "a"), endpoint(second.base_url, "b")) as model:
            with pytest.raises(UpstreamRejected):
                await model.chat(request())
        assert (first.calls, second.calls) == (1, 0)


async def test_inf_1_an_answer_is_kept_under_the_endpoint_that_gave_it(tmp_path):
    async with fake_upstream(error_reply(503)) as first, fake_upstream(ok_reply("second")) as second:
        a, b = endpoint(first.base_url, "a", model="large"), endpoint(second.base_url, "b", model="small")
        async with governed(tmp_path, a, b) as model:
            await model.chat(request())
            again = await model.chat(request())
            assert (again.cache_status, again.endpoint, second.calls) == (CacheStatus.HIT, "b", 1)
            first.default = ok_reply("first")
            assert (await model.chat(request())).content == "first"


async def test_inf_4_retry_after_of_one_endpoint_does_not_hold_back_the_other(tmp_path):
    async with (
        fake_upstream(ok_reply("first"), error_reply(429, "retry-after: 30")) as first,
        fake_upstream(ok_reply("second"), error_reply(503)) as second,
        governed(tmp_path, endpoint(first.base_url, "a"), endpoint(second.base_url, "b")) as model,
    ):
        answer = await model.chat(request(), deadline=now() + 5)
        assert (answer.content, first.calls, second.calls) == ("second", 1, 2)


async def test_inf_8_all_breakers_open_is_an_error_at_once_that_says_how_long(tmp_path):
    async with fake_upstream() as up, governed(tmp_path, endpoint(up.base_url), cooldown_seconds=30) as model:
        model.parts.operations.force_open("e1", 12)
        start = time.monotonic()
        with pytest.raises(EndpointsUnavailable) as caught:
            await model.chat(request())
        assert time.monotonic() - start < 0.2
        assert 11 < caught.value.wait_seconds <= 12
        assert up.calls == 0
        record = model.observer.records[0]
        assert (record.outcome, record.attempts, record.role) == (Outcome.TRANSIENT, 0, Role.AGENT)


async def test_inf_4_a_truncated_answer_of_a_long_stream_is_not_what_the_caller_gets(tmp_path):
    cut = stream(*(chunk(f"{i}") for i in range(50)))
    async with fake_upstream(ok_reply("whole"), cut, cut) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        assert (await model.chat(request())).content == "whole"
        assert up.calls == 3
