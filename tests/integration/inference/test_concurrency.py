"""INF-7 to INF-9: single flight, breaker and slots under many callers, against a real HTTP server."""

import asyncio
import time
from contextlib import aclosing

import pytest

from services.inference.domain.chat import CacheMode, CacheStatus, ChatResult
from services.inference.domain.errors import EndpointsUnavailable, UpstreamRejected, UpstreamTransient
from services.inference.domain.outcome import Outcome
from tests.builders.inference_parts import endpoint, eventually, governed, request
from tests.fakes.fake_upstream import Hold, Pause, chunk, error_reply, fake_upstream, ok_reply, stream


def slow(seconds, *texts):
    head, *rest = ok_reply(*texts)
    return [head, Pause(seconds), *rest]


async def opened(model, up, fails=1):
    """Open the breaker by real failures."""
    up.default = error_reply(503)
    for number in range(fails):
        with pytest.raises((UpstreamTransient, EndpointsUnavailable)):
            await model.chat(request(f"open {number}"))
    assert model.status().breaker_state == "open"
    up.requests.clear()


async def test_inf_8_fifty_callers_at_the_end_of_a_cooldown_make_one_upstream_call(tmp_path):
    async with (
        fake_upstream() as up,
        governed(tmp_path, endpoint(up.base_url), fail_threshold=4, cooldown_seconds=0.3) as model,
    ):
        await opened(model, up)
        up.default = slow(0.2)
        await asyncio.sleep(0.35)
        results = await asyncio.gather(*(model.chat(request(str(n))) for n in range(50)), return_exceptions=True)
        assert up.calls == 1
        assert sum(isinstance(r, ChatResult) for r in results) == 1
        assert sum(isinstance(r, EndpointsUnavailable) for r in results) == 49
        assert model.status().breaker_state == "closed"


async def test_inf_8_a_cancelled_probe_lets_the_next_caller_probe(tmp_path):
    async with (
        fake_upstream() as up,
        governed(tmp_path, endpoint(up.base_url), fail_threshold=4, cooldown_seconds=0.2) as model,
    ):
        await opened(model, up)
        up.default = stream(Hold(), end=False)
        await asyncio.sleep(0.25)
        probe = asyncio.create_task(model.chat(request("probe")))
        await eventually(lambda: up.calls == 1)
        with pytest.raises(EndpointsUnavailable):
            await model.chat(request("while the probe is out"))
        probe.cancel()
        await eventually(lambda: model.status().in_flight == 0)
        assert model.status().breaker_state == "half_open"
        up.default = ok_reply()
        assert (await model.chat(request("next"))).content == "Hello"
        assert (up.calls, model.status().breaker_state) == (2, "closed")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_inf_8_a_permanent_probe_neither_closes_nor_wedges(tmp_path, status):
    async with (
        fake_upstream() as up,
        governed(tmp_path, endpoint(up.base_url), fail_threshold=4, cooldown_seconds=0.1) as model,
    ):
        await opened(model, up)
        up.default = error_reply(status)
        await asyncio.sleep(0.15)
        for _ in range(2):
            with pytest.raises(UpstreamRejected):
                await model.chat(request("probe"))
            assert model.status().breaker_state == "half_open"
        up.default = ok_reply()
        await model.chat(request("good"))
        assert model.status().breaker_state == "closed"


async def test_inf_8_a_late_success_from_before_does_not_close(tmp_path):
    async with (
        fake_upstream(error_reply(503), slow(1.0)) as up,
        governed(tmp_path, endpoint(up.base_url), fail_threshold=4, cooldown_seconds=0.2) as model,
    ):
        early = asyncio.create_task(model.chat(request("early")))
        await eventually(lambda: up.calls == 1)
        await opened(model, up)
        assert (await early).content == "Hello"
        assert model.status().breaker_state == "half_open"


async def test_inf_8_opening_sends_away_those_who_wait_for_a_slot(tmp_path):
    async with (
        fake_upstream(stream(Hold(), end=False)) as up,
        governed(tmp_path, endpoint(up.base_url, concurrency_limit=1)) as model,
    ):
        holder = asyncio.create_task(model.chat(request("holder")))
        await eventually(lambda: up.calls == 1)
        waiting = [asyncio.create_task(model.chat(request(f"w{n}"))) for n in range(5)]
        await eventually(lambda: model.status().waiting == 5)
        model.parts.operations.force_open("e1", 30)
        done = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 1)
        assert all(isinstance(error, EndpointsUnavailable) for error in done)
        assert (up.calls, model.status().waiting) == (1, 0)
        holder.cancel()


async def test_inf_9_slots_bound_the_calls_in_flight_and_serve_in_order(tmp_path):
    async with (
        fake_upstream(slow(0.02)) as up,
        governed(tmp_path, endpoint(up.base_url, concurrency_limit=3)) as model,
    ):
        await asyncio.gather(*(model.chat(request(f"{n:02}")) for n in range(15)))
        assert up.most_running == 3
        order = [seen.json["messages"][0]["content"] for seen in up.requests]
        # Three start at once, and the connections they open may stand in any order.
        assert all(abs(int(text) - place) <= 2 for place, text in enumerate(order))


async def test_inf_9_two_hundred_cancelled_calls_leak_nothing(tmp_path):
    async with (
        fake_upstream(stream(chunk("a"), Hold(), end=False)) as up,
        governed(tmp_path, endpoint(up.base_url, concurrency_limit=10)) as model,
    ):
        for _ in range(10):
            calls = [asyncio.create_task(model.chat(request(f"{n}"), cache_mode=CacheMode.BYPASS)) for n in range(20)]
            await asyncio.sleep(0.05)
            for call in calls:
                call.cancel()
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(r, asyncio.CancelledError) for r in results)
        await asyncio.sleep(0.9)
        assert (up.open_connections, up.running) == (0, 0)
        assert (model.status().in_flight, model.status().waiting) == (0, 0)
        assert (model.status().breaker_state, model.status().consecutive_failures) == ("closed", 0)
        up.default = ok_reply()
        assert (await model.chat(request("next"))).content == "Hello"
        assert [r.outcome for r in model.observer.records[:200]] == [Outcome.CANCELLED] * 200


async def test_inf_9_a_cancelled_call_closes_its_upstream_connection_within_a_second(tmp_path):
    async with (
        fake_upstream(stream(Hold(), end=False)) as up,
        governed(tmp_path, endpoint(up.base_url)) as model,
    ):
        call = asyncio.create_task(model.chat(request()))
        await eventually(lambda: up.calls == 1)
        cancelled_at = time.monotonic()
        call.cancel()
        await eventually(lambda: up.requests[0].closed is not None)
        assert up.requests[0].closed - cancelled_at < 1


async def test_inf_7_identical_calls_in_flight_share_one_upstream_call(tmp_path):
    async with fake_upstream(slow(0.1)) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        results = await asyncio.gather(*(model.chat(request()) for _ in range(20)))
        assert up.calls == 1
        assert len({result.completion for result in results}) == 1
        assert sorted(r.cache_status for r in results) == [CacheStatus.JOINED] * 19 + [CacheStatus.MISS]
        assert len({result.call_id for result in results}) == len(model.observer.records) == 20


async def test_inf_7_a_cancelled_leader_costs_no_second_call(tmp_path):
    async with fake_upstream(slow(0.2)) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        leader = asyncio.create_task(model.chat(request()))
        await eventually(lambda: up.calls == 1)
        followers = [asyncio.create_task(model.chat(request())) for _ in range(19)]
        await asyncio.sleep(0.05)
        leader.cancel()
        results = await asyncio.gather(*followers)
        assert {r.content for r in results} == {"Hello"}
        assert (up.calls, model.status().in_flight) == (1, 0)


async def test_inf_7_the_last_caller_to_leave_ends_the_call(tmp_path):
    async with (
        fake_upstream(stream(Hold(), end=False)) as up,
        governed(tmp_path, endpoint(up.base_url)) as model,
    ):
        calls = [asyncio.create_task(model.chat(request())) for _ in range(3)]
        await eventually(lambda: up.calls == 1)
        for call in calls[:2]:
            call.cancel()
        await asyncio.sleep(0.1)
        assert up.open_connections == 1
        calls[2].cancel()
        await eventually(lambda: (up.open_connections, model.status().in_flight) == (0, 0))
        up.default = ok_reply()
        assert (await model.chat(request())).content == "Hello"


async def test_inf_7_streams_share_one_upstream_call_and_each_gets_every_delta(tmp_path):
    async with (
        fake_upstream(stream(chunk("a"), Pause(0.1), chunk("b"), Pause(0.1), chunk("c"), chunk(None, "stop"))) as up,
        governed(tmp_path, endpoint(up.base_url)) as model,
    ):

        async def read(after):
            await asyncio.sleep(after)
            return [event.content async for event in model.stream_chat(request())]

        results = await asyncio.gather(read(0), read(0.05), read(0.15), model.chat(request()))
        assert results[:2] == [["a", "b", "c", "abc"]] * 2
        assert results[2] == ["ab", "c", "abc"]  # what had come before is one delta
        assert (results[3].content, up.calls) == ("abc", 1)


async def test_inf_7_a_unary_caller_beside_a_broken_stream_still_gets_a_whole_answer(tmp_path):
    cut = stream(chunk("one"), Pause(0.1))
    async with fake_upstream(ok_reply("whole"), cut) as up, governed(tmp_path, endpoint(up.base_url)) as model:

        async def read():
            return [event async for event in model.stream_chat(request())]

        streamed, answer = await asyncio.gather(read(), model.chat(request()), return_exceptions=True)
        assert type(streamed).__name__ == "StreamInterrupted"
        assert (answer.content, up.calls) == ("whole", 2)


async def test_inf_9_closing_a_stream_ends_its_upstream_call(tmp_path):
    async with (
        fake_upstream(stream(chunk("a"), Hold(), end=False)) as up,
        governed(tmp_path, endpoint(up.base_url)) as model,
    ):
        async with aclosing(model.stream_chat(request())) as events:
            async for _ in events:
                break
        await eventually(lambda: (up.open_connections, model.status().in_flight) == (0, 0))
        assert model.observer.records[0].outcome is Outcome.CANCELLED


async def test_inf_5_refresh_and_bypass_ask_for_an_answer_of_their_own(tmp_path):
    async with fake_upstream(slow(0.05, "x")) as up, governed(tmp_path, endpoint(up.base_url)) as model:
        await model.chat(request())
        bypassed = await asyncio.gather(*(model.chat(request(), cache_mode=CacheMode.BYPASS) for _ in range(3)))
        assert ({r.cache_status for r in bypassed}, up.calls) == ({CacheStatus.BYPASS}, 4)
        up.default = ok_reply("new")
        assert (await model.chat(request())).content == "x"
        assert (await model.chat(request(), cache_mode=CacheMode.REFRESH)).content == "new"
        assert (await model.chat(request())).content == "new"
        assert up.calls == 5
