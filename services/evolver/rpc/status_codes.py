"""Which status each of the evolver's errors is answered with."""

from collections.abc import Mapping

import grpc

from services.evolver.domain import errors
from services.runtime.status import StatusRule

STATUS_RULES: Mapping[type[Exception], StatusRule] = {
    errors.InvalidRequest: StatusRule(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
    errors.UnusableTarget: StatusRule(grpc.StatusCode.INVALID_ARGUMENT, "UNUSABLE_TARGET"),
    errors.UnknownRun: StatusRule(grpc.StatusCode.NOT_FOUND, "UNKNOWN_RUN"),
    errors.DegradedJudgement: StatusRule(grpc.StatusCode.ABORTED, "DEGRADED_JUDGEMENT"),
    errors.StoreUnavailable: StatusRule(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE"),
    errors.ModelUnavailable: StatusRule(grpc.StatusCode.UNAVAILABLE, "MODEL_UNAVAILABLE"),
}
