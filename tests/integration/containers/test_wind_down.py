"""CLI-4 in containers; the file's name puts it after the tests that need the services."""

from __future__ import annotations

import pytest

from tests.integration.containers.stack import BUILD_TIMEOUT_SECONDS, SERVICES, Stack

pytestmark = [
    pytest.mark.container,
    pytest.mark.slow,
    pytest.mark.timeout(BUILD_TIMEOUT_SECONDS + 300),
]


def test_cli_4_every_service_stops_cleanly(stack: Stack) -> None:
    for service in SERVICES:
        stack.wait_until_healthy(service)
    stack.compose("stop", *SERVICES)
    for service in SERVICES:
        state = stack.state(service)
        assert (state["Status"], state["ExitCode"]) == ("exited", 0), stack.compose("logs", "--tail", "50", service)
