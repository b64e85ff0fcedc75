"""CLI-4: errors carry details, an unexpected exception gives only its id, streams like single answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import pytest
import structlog
from google.protobuf.wrappers_pb2 import StringValue

from services.runtime.metrics import REGISTRY
from services.runtime.status import error_info, field_violations
from services.runtime.testing import local_channel
from tests.integration.runtime.echo import SERVICE, EchoClient, parts

Ask = Callable[[EchoClient, str], Awaitable[Any]]


async def _say(client: EchoClient, text: str) -> Any:
    return await client.say(StringValue(value=text))


async def _say_twice(client: EchoClient, text: str) -> Any:
    return [answer.value async for answer in client.say_twice(StringValue(value=text))]


async def _say_by_write(client: EchoClient, text: str) -> Any:
    return [answer.value async for answer in client.say_by_write(StringValue(value=text))]


async def _say_all(client: EchoClient, text: str) -> Any:
    return await client.say_all(iter([StringValue(value=text)]))


async def _say_each(client: EchoClient, text: str) -> Any:
    return [answer.value async for answer in client.say_each(iter([StringValue(value=text)]))]


every_kind_of_call = pytest.mark.parametrize("ask", [_say, _say_twice, _say_by_write, _say_all, _say_each])


@pytest.fixture
async def client() -> AsyncIterator[EchoClient]:
    async with local_channel("test", parts()) as channel:
        yield EchoClient(channel)


@every_kind_of_call
async def test_cli_4_a_domain_error_carries_reason_domain_metadata_and_field(client: EchoClient, ask: Ask) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(client, "too loud")
    info = error_info(caught.value)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == "at most 3 exclamation marks"
    assert info is not None
    assert (info.reason, info.domain, dict(info.metadata)) == ("TOO_LOUD", "videotree.test", {"limit": "3"})
    assert field_violations(caught.value) == {"value": "at most 3 exclamation marks"}


@every_kind_of_call
async def test_cli_4_an_unexpected_exception_is_logged_with_an_id_and_answered_with_only_that(
    client: EchoClient, ask: Ask
) -> None:
    with structlog.testing.capture_logs() as logged, pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(client, "crash")
    info = error_info(caught.value)
    assert info is not None
    error_id = info.metadata["error_id"]
    assert caught.value.code() == grpc.StatusCode.INTERNAL
    assert caught.value.details() == f"internal error {error_id}"
    assert [(line["error_id"], str(line["exc_info"])) for line in logged] == [(error_id, "the planted detail")]
    assert "planted detail" not in str(caught.value.trailing_metadata())


@every_kind_of_call
async def test_cli_4_the_servicers_own_abort_passes_unchanged(client: EchoClient, ask: Ask) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(client, "abort")
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.NOT_FOUND, "by the servicer itself")
    assert error_info(caught.value) is None


@every_kind_of_call
async def test_cli_4_answers_pass_unchanged(client: EchoClient, ask: Ask) -> None:
    answer = await ask(client, "hello")
    assert (answer.value if isinstance(answer, StringValue) else answer[-1]) == "hello"


def _calls(method: str, code: str) -> float:
    labels = {"method": f"/{SERVICE}/{method}", "code": code}
    return REGISTRY.get_sample_value("videotree_grpc_calls_total", labels) or 0.0


async def _until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not reached():
            await asyncio.sleep(0.01)


async def test_cli_4_a_passed_deadline_and_a_cancelled_call_are_counted_as_what_they_are(client: EchoClient) -> None:
    expired, cancelled = _calls("Say", "DEADLINE_EXCEEDED"), _calls("Say", "CANCELLED")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.say(StringValue(value="hang"), timeout=0.1)
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    call = client.say(StringValue(value="hang"))
    await asyncio.sleep(0.1)
    call.cancel()
    await _until(lambda: _calls("Say", "CANCELLED") == cancelled + 1)
    await _until(lambda: _calls("Say", "DEADLINE_EXCEEDED") == expired + 1)


async def test_cli_4_calls_are_counted_by_method_and_code(client: EchoClient) -> None:
    good, bad = _calls("Say", "OK"), _calls("Say", "INVALID_ARGUMENT")
    await _say(client, "hello")
    with pytest.raises(grpc.aio.AioRpcError):
        await _say(client, "too loud")
    await _until(lambda: (_calls("Say", "OK"), _calls("Say", "INVALID_ARGUMENT")) == (good + 1, bad + 1))
    in_flight = REGISTRY.get_sample_value("videotree_grpc_calls_in_flight", {"method": f"/{SERVICE}/Say"})
    assert in_flight == 0


async def test_a_request_id_is_taken_from_the_client_or_made(client: EchoClient) -> None:
    given = await client.say(StringValue(value="request id"), metadata=(("x-request-id", "from-the-client"),))
    made = await client.say(StringValue(value="request id"))
    unusable = await client.say(StringValue(value="request id"), metadata=(("x-request-id", "x" * 500),))
    assert given.value == "from-the-client"
    assert re.fullmatch("[0-9a-f]{32}", made.value)
    assert re.fullmatch("[0-9a-f]{32}", unusable.value)


async def test_an_unknown_method_is_unimplemented(client: EchoClient) -> None:
    async with local_channel("test", parts()) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary("/videotree.test.Echo/Sing")(b"")
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
