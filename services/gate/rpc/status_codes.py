"""Which status each of the gate's errors is answered with."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from services.gate.domain import errors
from services.runtime.status import StatusRule

STATUS_RULES: Mapping[type[Exception], StatusRule] = {
    errors.InvalidRequest: StatusRule(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
    errors.InvalidParameter: StatusRule(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PARAMETER"),
    errors.EmptyLadder: StatusRule(grpc.StatusCode.INVALID_ARGUMENT, "EMPTY_LADDER"),
    errors.DuplicateLadderUnit: StatusRule(grpc.StatusCode.INVALID_ARGUMENT, "DUPLICATE_LADDER_UNIT"),
    errors.UnknownLadderUnit: StatusRule(grpc.StatusCode.NOT_FOUND, "UNKNOWN_LADDER_UNIT"),
    errors.OverlappingTargets: StatusRule(grpc.StatusCode.INVALID_ARGUMENT, "OVERLAPPING_TARGETS"),
    errors.BadRunPrefix: StatusRule(grpc.StatusCode.INVALID_ARGUMENT, "BAD_RUN_PREFIX"),
    errors.GuardTripped: StatusRule(grpc.StatusCode.ABORTED, "GUARD_TRIPPED"),
    errors.AllUnitsExcluded: StatusRule(grpc.StatusCode.FAILED_PRECONDITION, "ALL_UNITS_EXCLUDED"),
    errors.NeighbourFailed: StatusRule(grpc.StatusCode.UNAVAILABLE, "NEIGHBOUR_FAILED"),
    errors.MissingInStore: StatusRule(grpc.StatusCode.NOT_FOUND, "MISSING_IN_STORE"),
    errors.ArmFailed: StatusRule(grpc.StatusCode.UNAVAILABLE, "ARM_FAILED"),
    errors.ArmRefused: StatusRule(grpc.StatusCode.FAILED_PRECONDITION, "ARM_REFUSED"),
}
