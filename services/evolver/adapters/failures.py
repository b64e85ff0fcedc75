"""From a failed gRPC call to the evolver's own errors."""

import grpc

from services.evolver.domain.errors import EvolverError, ModelUnavailable, StoreUnavailable, UnknownRun

_ABSENT = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)


def store_failure(error: grpc.aio.AioRpcError, call: str) -> EvolverError:
    """Return the failure of a call to the store; what it does not have is told apart from a store that is away."""
    words = f"store {call}: {error.code().name}: {error.details()}"
    return UnknownRun(words) if error.code() in _ABSENT else StoreUnavailable(words)


def model_failure(error: grpc.aio.AioRpcError) -> ModelUnavailable:
    """Return the failure of a model call with what the inference service said."""
    return ModelUnavailable(
        f"inference Chat: {error.code().name}: {error.details()}", metadata={"inference_status": error.code().name}
    )
