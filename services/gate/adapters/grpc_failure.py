"""From a failed gRPC call to the gate's own errors."""

from __future__ import annotations

import grpc

from services.gate.domain.errors import MissingInStore, NeighbourFailed


def neighbour_failure(error: grpc.aio.AioRpcError, call: str) -> NeighbourFailed:
    """The failure of `call` (for people, e.g. `inference AnswerQuestions`)."""
    return NeighbourFailed(_words(error, call), status=error.code().name)


def store_failure(error: grpc.aio.AioRpcError, call: str) -> NeighbourFailed:
    """The failure of a call to the store; what the store does not have is told apart from a store that is away."""
    kind = MissingInStore if error.code() is grpc.StatusCode.NOT_FOUND else NeighbourFailed
    return kind(_words(error, call), status=error.code().name)


def _words(error: grpc.aio.AioRpcError, call: str) -> str:
    return f"{call}: {error.code().name}: {error.details()}"
