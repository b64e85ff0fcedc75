"""INF-7, INF-11: what a flight gives to its callers, fast or slow."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from services.inference.domain.chat import Delta, ToolCallPiece
from services.inference.use_cases.flight import Flight

A_MINUTE = 60.0


def _started(publish_all: asyncio.Event, texts: list[str]) -> Flight[str]:
    async def work(flight: Flight[str]) -> str:
        publish = flight.begin_attempt("e")
        publish(Delta(texts[0]))
        await publish_all.wait()
        for text in texts[1:]:
            publish(Delta(text))
        return "".join(texts)

    flight: Flight[str] = Flight()
    flight.start(work, lambda: None)
    return flight


async def test_inf_11_a_slow_caller_gets_what_waited_for_it_as_one_delta() -> None:
    texts, go_on = [f"{n} " for n in range(1000)], asyncio.Event()
    flight = _started(go_on, texts)
    until = asyncio.get_running_loop().time() + A_MINUTE
    got = []
    async with aclosing(flight.stream(until)) as deltas:
        async for delta in deltas:
            got.append(delta.content)
            go_on.set()
            await asyncio.sleep(0.01)  # the caller is slow; the flight is not held up
    assert got == [texts[0], "".join(texts[1:])]
    assert await flight.result(until) == "".join(texts)


async def test_inf_11_one_delta_keeps_every_part_in_its_order() -> None:
    async def work(flight: Flight[None]) -> None:
        publish = flight.begin_attempt("e")
        publish(Delta(reasoning="let me "))
        publish(Delta(reasoning="think", content="a"))
        publish(Delta(content="b", tool_calls=(ToolCallPiece(0, "id", "name", '{"x"'),)))
        publish(Delta(tool_calls=(ToolCallPiece(0, "", "", ": 1}"), ToolCallPiece(1, "id2", "other", ""))))

    flight: Flight[None] = Flight()
    flight.start(work, lambda: None)
    until = asyncio.get_running_loop().time() + A_MINUTE
    got = [delta async for delta in flight.stream(until)]
    pieces = (
        ToolCallPiece(0, "id", "name", '{"x"'),
        ToolCallPiece(0, "", "", ": 1}"),
        ToolCallPiece(1, "id2", "other", ""),
    )
    assert got == [Delta("ab", "let me think", pieces)]
