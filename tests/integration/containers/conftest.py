from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.integration.containers.stack import BUILD_TIMEOUT_SECONDS, SERVICES, Stack, run


@pytest.fixture(scope="session")
def images() -> None:
    """The images of every process, built without a registry; layers that are as before come from the engine's cache."""
    run(["deploy/images-offline.sh"], Stack("videotree-build").env(), BUILD_TIMEOUT_SECONDS)


@pytest.fixture(scope="session")
def stack(images: None) -> Iterator[Stack]:
    """The whole stack; gone again at the end."""
    stack = Stack(f"videotree-test-{os.getpid()}")
    try:
        stack.compose("up", "--detach", "--no-build")
        for service in SERVICES:
            stack.wait_until_healthy(service)
        yield stack
    finally:
        stack.compose("down", "--volumes", "--timeout", "15", "--remove-orphans")
