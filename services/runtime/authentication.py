"""The bearer token that a service may ask of its clients."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

import grpc

from services.runtime.status import StatusRule

AUTHORIZATION_KEY = "authorization"
_OPEN_METHODS = "/grpc.health.v1.Health/"


class TokenMissing(Exception):
    """The call carries no bearer token though the service asks for one."""


class TokenWrong(Exception):
    """The call's bearer token isn't the service's."""


TOKEN_RULES: Mapping[type[Exception], StatusRule] = {
    TokenMissing: StatusRule(grpc.StatusCode.UNAUTHENTICATED, "TOKEN_MISSING"),
    TokenWrong: StatusRule(grpc.StatusCode.UNAUTHENTICATED, "TOKEN_WRONG"),
}


def bearer(token: str) -> str:
    """The value of the `authorization` metadata that carries `token`."""
    return f"Bearer {token}"


class TokenCheck:
    """Compares the token of each call with the service's, in constant time; health checks need none."""

    def __init__(self, token: str) -> None:
        self._expected = bearer(token).encode()

    def require(self, method: str, metadata: Mapping[str, str]) -> None:
        """Returns when the call may go on; raises TokenMissing or TokenWrong otherwise."""
        if method.startswith(_OPEN_METHODS):
            return
        given = metadata.get(AUTHORIZATION_KEY)
        if given is None:
            raise TokenMissing("this service asks for a token; set VIDEOTREE_TOKEN_FILE to the file that holds it")
        if not hmac.compare_digest(given.encode(), self._expected):
            raise TokenWrong("the token given isn't this service's")
