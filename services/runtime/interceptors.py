"""What surrounds every call of every server: request id, deadline, token, error mapping, metrics."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, TypeAlias

import grpc
from google.rpc import status_pb2
from grpc_status import rpc_status

from services.runtime.authentication import TOKEN_RULES, TokenCheck
from services.runtime.logging import get_logger
from services.runtime.metrics import MethodMetrics
from services.runtime.request_context import REQUEST_ID_KEY, enter_request, remaining_seconds
from services.runtime.status import StatusRule, error_status, rule_for

_UNEXPECTED = StatusRule(grpc.StatusCode.INTERNAL, "INTERNAL")
_log = get_logger(__name__)

# Quoted: grpc's classes are generic in their stubs only.
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Serves each call inside a `_Call`; `domain` is the `ErrorInfo.domain`, `rules` the service's error table."""

    def __init__(self, domain: str, rules: Mapping[type[Exception], StatusRule], token: TokenCheck | None) -> None:
        self._domain = domain
        self._rules: dict[type[Exception], StatusRule] = {**TOKEN_RULES, **rules}
        self._token = token
        self._surrounded: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """The method's handler with everything around it; None for a method that doesn't exist (UNIMPLEMENTED)."""
        method = handler_call_details.method
        known = self._surrounded.get(method)
        if known is not None:
            return known
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        surroundings = _Surroundings(MethodMetrics(method), self._token, self._status_of)
        return self._surrounded.setdefault(method, _surrounded(handler, partial(_Call, surroundings)))

    def _status_of(self, error: Exception, method: str) -> status_pb2.Status:
        rule = rule_for(error, self._rules)
        if rule is not None:
            return error_status(rule, error, self._domain)
        error_id = uuid.uuid4().hex
        _log.error("unexpected exception", method=method, error_id=error_id, exc_info=error)
        return error_status(_UNEXPECTED, _InternalError(error_id), self._domain)


class _InternalError(Exception):
    """All that a client learns of an unexpected exception: the id under which it was logged."""

    def __init__(self, error_id: str) -> None:
        super().__init__(f"internal error {error_id}")
        self.metadata = {"error_id": error_id}


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What all calls of one method share."""

    metrics: MethodMetrics
    token: TokenCheck | None
    status_of: Callable[[Exception, str], status_pb2.Status]


class _Call:
    """One call from its arrival to its status, as an async context manager around the servicer's method."""

    __slots__ = ("_code", "_context", "_method", "_started")

    def __init__(self, method: _Surroundings, context: Context) -> None:
        self._method = method
        self._context = context
        self._code = grpc.StatusCode.OK
        self._started = time.perf_counter()

    async def __aenter__(self) -> None:
        metadata = _text_metadata(self._context)
        enter_request(metadata.get(REQUEST_ID_KEY), remaining_seconds(self._context))
        self._method.metrics.arrived()
        if self._method.token is not None:
            try:
                self._method.token.require(self._method.metrics.method, metadata)
            except Exception as error:
                await self.__aexit__(type(error), error, error.__traceback__)

    async def __aexit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._code = _code_set_by_servicer(self._context)
            else:
                await self._answer(error)
        finally:
            self._method.metrics.answered(self._code.name, time.perf_counter() - self._started)

    async def _answer(self, error: BaseException) -> None:
        """Ends the call with the status of `error`; what gRPC itself raised to end it goes on unchanged."""
        if isinstance(error, grpc.aio.AbortError):
            self._code = _code_set_by_servicer(self._context)
            return
        expired = remaining_seconds(self._context) == 0.0
        if not isinstance(error, Exception):
            self._code = grpc.StatusCode.DEADLINE_EXCEEDED if expired else grpc.StatusCode.CANCELLED
            return
        if isinstance(error, TimeoutError) and expired:
            self._code = grpc.StatusCode.DEADLINE_EXCEEDED
            await self._context.abort(self._code, "the deadline passed")
        status = rpc_status.to_status(self._method.status_of(error, self._method.metrics.method))
        self._code = status.code
        await self._context.abort(status.code, status.details, status.trailing_metadata or ())


def _surrounded(handler: Handler, call: Callable[[Context], _Call]) -> Handler:
    serializers = (handler.request_deserializer, handler.response_serializer)
    behaviour: Any = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream

    async def one_answer(request: Any, context: Context) -> Any:
        async with call(context):
            return await behaviour(request, context)

    async def many_answers(request: Any, context: Context) -> AsyncIterator[Any]:
        async with call(context):
            answers = behaviour(request, context)
            if not hasattr(answers, "__aiter__"):  # a coroutine that sends by context.write
                await answers
                return
            async with contextlib.aclosing(answers):
                async for answer in answers:
                    yield answer

    # grpc types behaviours as synchronous ones; grpc.aio takes coroutines and asynchronous generators.
    makers: dict[tuple[bool, bool], Callable[..., Handler]] = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }
    make = makers[handler.request_streaming, handler.response_streaming]
    return make(many_answers if handler.response_streaming else one_answer, *serializers)


def _text_metadata(context: Context) -> dict[str, str]:
    return {str(key): value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


def _code_set_by_servicer(context: Context) -> grpc.StatusCode:
    code = context.code()  # 0 as long as nobody set one
    return code if isinstance(code, grpc.StatusCode) else grpc.StatusCode.OK
