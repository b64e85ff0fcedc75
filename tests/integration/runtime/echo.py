"""A service made for these tests; run as a program it is a real child process of the runtime."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import grpc
from google.protobuf.wrappers_pb2 import StringValue

from services.runtime.config import ServingConfig
from services.runtime.entry import service_main
from services.runtime.request_context import current_request_id, remaining_seconds
from services.runtime.serving import ServiceParts
from services.runtime.status import StatusRule

SERVICE = "videotree.test.Echo"


class TooLoud(Exception):
    """A domain error with everything an error may carry."""

    field = "value"
    metadata: ClassVar = {"limit": "3"}


class EchoConfig(ServingConfig):
    """Free ports, a short grace."""

    port: int = 0
    metrics_port: int = 0
    grace_seconds: float = 0.5


RULES: dict[type[Exception], StatusRule] = {TooLoud: StatusRule(grpc.StatusCode.INVALID_ARGUMENT, "TOO_LOUD")}


async def _behave(request: StringValue, context: Any) -> str:
    match request.value:
        case "too loud":
            raise TooLoud("at most 3 exclamation marks")
        case "crash":
            raise RuntimeError("the planted detail")
        case "abort":
            await context.abort(grpc.StatusCode.NOT_FOUND, "by the servicer itself")
        case "hang":
            await asyncio.sleep(3600)
        case "slow":
            await asyncio.sleep(0.3)
        case "request id":
            return current_request_id()
        case "seconds left":
            return str(remaining_seconds())
    return request.value


async def say(request: StringValue, context: Any) -> StringValue:
    return StringValue(value=await _behave(request, context))


async def say_twice(request: StringValue, context: Any) -> AsyncIterator[StringValue]:
    yield StringValue(value="first")
    yield StringValue(value=await _behave(request, context))


async def say_by_write(request: StringValue, context: Any) -> None:
    await context.write(StringValue(value="first"))
    await context.write(StringValue(value=await _behave(request, context)))


async def say_all(requests: AsyncIterator[StringValue], context: Any) -> StringValue:
    return StringValue(value="".join([await _behave(request, context) async for request in requests]))


async def say_each(requests: AsyncIterator[StringValue], context: Any) -> AsyncIterator[StringValue]:
    async for request in requests:
        yield StringValue(value=await _behave(request, context))


def register(server: grpc.aio.Server) -> None:
    coding = (StringValue.FromString, StringValue.SerializeToString)
    handlers: dict[str, Any] = {
        "Say": grpc.unary_unary_rpc_method_handler(say, *coding),  # type: ignore[arg-type]
        "SayTwice": grpc.unary_stream_rpc_method_handler(say_twice, *coding),  # type: ignore[arg-type]
        "SayByWrite": grpc.unary_stream_rpc_method_handler(say_by_write, *coding),  # type: ignore[arg-type]
        "SayAll": grpc.stream_unary_rpc_method_handler(say_all, *coding),  # type: ignore[arg-type]
        "SayEach": grpc.stream_stream_rpc_method_handler(say_each, *coding),  # type: ignore[arg-type]
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))


class EchoClient:
    """Calls the service through any channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        coding = {
            "request_serializer": StringValue.SerializeToString,
            "response_deserializer": StringValue.FromString,
        }
        self.say = channel.unary_unary(f"/{SERVICE}/Say", **coding)  # type: ignore[arg-type]
        self.say_twice = channel.unary_stream(f"/{SERVICE}/SayTwice", **coding)  # type: ignore[arg-type]
        self.say_by_write = channel.unary_stream(f"/{SERVICE}/SayByWrite", **coding)  # type: ignore[arg-type]
        self.say_all = channel.stream_unary(f"/{SERVICE}/SayAll", **coding)  # type: ignore[arg-type]
        self.say_each = channel.stream_stream(f"/{SERVICE}/SayEach", **coding)  # type: ignore[arg-type]


async def no_close() -> None:
    return None


def parts() -> ServiceParts:
    return ServiceParts(register, (SERVICE,), RULES, no_close)


async def build(_config: EchoConfig) -> ServiceParts:
    async def close() -> None:
        sys.stdout.write("adapters closed\n")
        sys.stdout.flush()

    return ServiceParts(register, (SERVICE,), RULES, close)


if __name__ == "__main__":
    raise SystemExit(service_main("store", EchoConfig, build))
