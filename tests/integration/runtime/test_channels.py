"""The request id and the deadline of a request go along with the calls made to serve it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from google.protobuf.wrappers_pb2 import StringValue

from services.runtime.request_context import enter_request
from services.runtime.testing import local_channel
from tests.integration.runtime.echo import EchoClient, parts


@pytest.fixture
async def client() -> AsyncIterator[EchoClient]:
    async with local_channel("test", parts()) as channel:
        yield EchoClient(channel)


async def _within_request(client: EchoClient, text: str, seconds_left: float | None, timeout: float | None) -> str:
    enter_request("outer-request", seconds_left)
    answer = await client.say(StringValue(value=text), timeout=timeout)
    return answer.value


async def test_the_request_id_goes_along(client: EchoClient) -> None:
    assert await asyncio.create_task(_within_request(client, "request id", None, None)) == "outer-request"


@pytest.mark.parametrize(("left", "timeout"), [(5.0, None), (5.0, 60.0), (60.0, 5.0)])
async def test_the_sooner_of_both_deadlines_holds(client: EchoClient, left: float, timeout: float | None) -> None:
    seconds = float(await asyncio.create_task(_within_request(client, "seconds left", left, timeout)))
    assert 4.0 < seconds <= 5.1


async def test_outside_of_a_request_the_given_timeout_holds(client: EchoClient) -> None:
    none = await client.say(StringValue(value="seconds left"))
    given = await client.say(StringValue(value="seconds left"), timeout=5)
    assert none.value == "None"
    assert 4.0 < float(given.value) <= 5.1
