"""From a domain error to a gRPC status with details, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import grpc
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

_LONGEST_TEXT = 2000


@dataclass(frozen=True, slots=True)
class StatusRule:
    """How one class of domain errors is answered: the status code and the `ErrorInfo.reason`, e.g. `STALE_ETAG`."""

    code: grpc.StatusCode
    reason: str


def rule_for(error: BaseException, rules: Mapping[type[Exception], StatusRule]) -> StatusRule | None:
    """The rule of the most specific class of `error` (by its MRO), or None when no class has one."""
    for cls in type(error).__mro__:
        rule = rules.get(cls)
        if rule is not None:
            return rule
    return None


def error_status(rule: StatusRule, error: Exception, domain: str) -> status_pb2.Status:
    """The status of `error` with `ErrorInfo`, and with `BadRequest` when the error names the `field` at fault.

    The error's optional attributes are `field` (path of the request field) and `metadata` (text by name).
    """
    message = _shortened(str(error))
    status = status_pb2.Status(code=_number(rule.code), message=message)
    metadata: Mapping[str, str] = getattr(error, "metadata", None) or {}
    info = error_details_pb2.ErrorInfo(
        reason=rule.reason, domain=domain, metadata={key: _shortened(str(value)) for key, value in metadata.items()}
    )
    status.details.add().Pack(info)
    field: str | None = getattr(error, "field", None)
    if field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=field, description=message)
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    return status


def error_info(error: grpc.RpcError) -> error_details_pb2.ErrorInfo | None:
    """The `ErrorInfo` a server sent with `error`; None when it sent none."""
    info = error_details_pb2.ErrorInfo()
    return info if _unpack(error, info) else None


def field_violations(error: grpc.RpcError) -> dict[str, str]:
    """What a server found wrong with the request: description by field path (empty when it named no field)."""
    bad_request = error_details_pb2.BadRequest()
    if not _unpack(error, bad_request):
        return {}
    return {violation.field: violation.description for violation in bad_request.field_violations}


def _unpack(error: grpc.RpcError, detail: error_details_pb2.ErrorInfo | error_details_pb2.BadRequest) -> bool:
    status = rpc_status.from_call(cast("grpc.Call", error))
    return status is not None and any(packed.Unpack(detail) for packed in status.details)


def _shortened(text: str) -> str:
    """At most 2,000 characters: a status travels as HTTP/2 metadata, which clients limit, often to 8 KiB."""
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def _number(code: grpc.StatusCode) -> int:
    return cast("int", code_pb2.Code.Value(code.name))
