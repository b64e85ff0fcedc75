"""Which status each error of AnswerQuestions becomes; the model's own errors stand in the room's main table."""

from collections.abc import Mapping

import grpc

from services.inference.domain.agent_errors import NotFound, StoreUnavailable, UnusableVersion
from services.inference.use_cases.answer_ports import RecordRefused
from services.runtime.status import StatusRule

AGENT_STATUS_RULES: Mapping[type[Exception], StatusRule] = {
    NotFound: StatusRule(grpc.StatusCode.NOT_FOUND, "NOT_FOUND"),
    UnusableVersion: StatusRule(grpc.StatusCode.FAILED_PRECONDITION, "UNUSABLE_VERSION"),
    StoreUnavailable: StatusRule(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE"),
    RecordRefused: StatusRule(grpc.StatusCode.FAILED_PRECONDITION, "RECORD_REFUSED"),
}
