"""CLI-4: a domain error has one status, found by its most specific class."""

from __future__ import annotations

from typing import ClassVar

import grpc
import pytest
from google.rpc import error_details_pb2

from services.runtime.status import StatusRule, error_status, rule_for


class StoreError(Exception):
    pass


class StaleEtag(StoreError):
    field = "etag"
    metadata: ClassVar = {"held": "3", "stored": "4"}


GENERAL = StatusRule(grpc.StatusCode.FAILED_PRECONDITION, "STORE")
STALE = StatusRule(grpc.StatusCode.ABORTED, "STALE_ETAG")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({StoreError: GENERAL, StaleEtag: STALE}, STALE),
        ({StaleEtag: STALE, StoreError: GENERAL}, STALE),
        ({StoreError: GENERAL}, GENERAL),
        ({KeyError: STALE}, None),
    ],
)
def test_cli_4_the_most_specific_class_decides(
    rules: dict[type[Exception], StatusRule], expected: StatusRule | None
) -> None:
    assert rule_for(StaleEtag(), rules) == expected


def test_cli_4_details_name_reason_domain_metadata_and_field() -> None:
    status = error_status(STALE, StaleEtag("the etag is old"), "videotree.store")
    info, bad_request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    assert status.details[0].Unpack(info)
    assert status.details[1].Unpack(bad_request)
    assert (status.code, status.message) == (10, "the etag is old")
    assert (info.reason, info.domain, dict(info.metadata)) == (
        "STALE_ETAG",
        "videotree.store",
        {"held": "3", "stored": "4"},
    )
    assert [(v.field, v.description) for v in bad_request.field_violations] == [("etag", "the etag is old")]


def test_cli_4_an_error_about_no_field_has_no_bad_request() -> None:
    assert len(error_status(GENERAL, StoreError("full"), "videotree.store").details) == 1


def test_cli_4_a_long_text_is_cut_to_what_metadata_can_carry() -> None:
    status = error_status(STALE, StaleEtag("x" * 100_000), "videotree.store")
    assert len(status.message) == 2000
    assert status.ByteSize() < 7000
