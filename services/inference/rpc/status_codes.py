"""Which gRPC status each domain error becomes."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from services.inference.domain import agent_errors, errors
from services.runtime.status import StatusRule

STATUS_RULES: Mapping[type[Exception], StatusRule] = {
    errors.InvalidRequest: StatusRule(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
    errors.RequestTooLarge: StatusRule(grpc.StatusCode.RESOURCE_EXHAUSTED, "REQUEST_TOO_LARGE"),
    errors.RoleNotConfigured: StatusRule(grpc.StatusCode.FAILED_PRECONDITION, "ROLE_NOT_CONFIGURED"),
    errors.UnknownEndpoint: StatusRule(grpc.StatusCode.NOT_FOUND, "UNKNOWN_ENDPOINT"),
    errors.CacheUnavailable: StatusRule(grpc.StatusCode.UNAVAILABLE, "CACHE_UNAVAILABLE"),
    errors.DeadlineExceeded: StatusRule(grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"),
    errors.EndpointsUnavailable: StatusRule(grpc.StatusCode.UNAVAILABLE, "ENDPOINTS_UNAVAILABLE"),
    errors.UpstreamRejected: StatusRule(grpc.StatusCode.FAILED_PRECONDITION, "UPSTREAM_REJECTED"),
    errors.UpstreamTransient: StatusRule(grpc.StatusCode.UNAVAILABLE, "UPSTREAM_TRANSIENT"),
    errors.UpstreamTruncated: StatusRule(grpc.StatusCode.UNAVAILABLE, "UPSTREAM_TRUNCATED"),
    errors.StreamInterrupted: StatusRule(grpc.StatusCode.ABORTED, "STREAM_INTERRUPTED"),
    agent_errors.NotFound: StatusRule(grpc.StatusCode.NOT_FOUND, "NOT_FOUND"),
    agent_errors.UnusableVersion: StatusRule(grpc.StatusCode.FAILED_PRECONDITION, "UNUSABLE_VERSION"),
    agent_errors.RecordRefused: StatusRule(grpc.StatusCode.FAILED_PRECONDITION, "RECORD_REFUSED"),
    agent_errors.StoreUnavailable: StatusRule(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE"),
}
