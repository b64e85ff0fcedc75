"""How each of the store's errors is answered; the most specific class wins."""

from __future__ import annotations

from collections.abc import Mapping

from grpc import StatusCode

from services.runtime.status import StatusRule
from services.store.domain import errors

STATUS_RULES: Mapping[type[Exception], StatusRule] = {
    errors.InvalidRequest: StatusRule(StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
    errors.InvalidName: StatusRule(StatusCode.INVALID_ARGUMENT, "INVALID_NAME"),
    errors.InvalidVersionFile: StatusRule(StatusCode.INVALID_ARGUMENT, "INVALID_VERSION_FILE"),
    errors.UnknownManifestKey: StatusRule(StatusCode.INVALID_ARGUMENT, "UNKNOWN_MANIFEST_KEY"),
    errors.InvalidPageToken: StatusRule(StatusCode.INVALID_ARGUMENT, "INVALID_PAGE_TOKEN"),
    errors.NotFound: StatusRule(StatusCode.NOT_FOUND, "NOT_FOUND"),
    errors.AlreadyExists: StatusRule(StatusCode.ALREADY_EXISTS, "ALREADY_EXISTS"),
    errors.PoolsAlreadyFrozen: StatusRule(StatusCode.ALREADY_EXISTS, "POOLS_ALREADY_FROZEN"),
    errors.StaleEtag: StatusRule(StatusCode.ABORTED, "STALE_ETAG"),
    errors.StaleParent: StatusRule(StatusCode.ABORTED, "STALE_PARENT"),
    errors.PreconditionFailed: StatusRule(StatusCode.FAILED_PRECONDITION, "PRECONDITION_FAILED"),
    errors.FingerprintMismatch: StatusRule(StatusCode.FAILED_PRECONDITION, "FINGERPRINT_MISMATCH"),
    errors.PoolsMismatch: StatusRule(StatusCode.FAILED_PRECONDITION, "POOLS_MISMATCH"),
    errors.StorageFailed: StatusRule(StatusCode.UNAVAILABLE, "STORAGE_FAILED"),
}
