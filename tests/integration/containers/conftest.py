from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.integration.containers.stack import BUILD_TIMEOUT_SECONDS, SERVICES, Stack, run


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The whole stack, its images built without a registry; gone again at the end."""
    stack = Stack(f"videotree-test-{os.getpid()}")
    run(["deploy/images-offline.sh"], stack.env(), BUILD_TIMEOUT_SECONDS)
    try:
        stack.compose("up", "--detach", "--no-build")
        for service in SERVICES:
            stack.wait_until_healthy(service)
        yield stack
    finally:
        stack.compose("down", "--volumes", "--timeout", "15", "--remove-orphans")
