"""What tests need from outside: a Docker engine, a redis-server binary, the public data.

Where one is absent the tests that need it are skipped with the reason. VIDEOTREE_REQUIRE (a comma-separated list of
`docker`, `redis`, `data`) turns such a skip into a failure, so that CI can't pass by testing nothing.

HYPOTHESIS_PROFILE chooses how much property tests try: `ci` draws the same examples on every run and prints how to
repeat a failure; `deep` tries twenty times as many, whatever number a test asks for.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
DEEPER = 20
settings.register_profile("ci", derandomize=True, print_blob=True, deadline=None)
settings.register_profile("deep", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(PROFILE)

# A shell's background job ignores SIGINT, and so would every process started by a test that interrupts it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

DATA = Path(os.environ.get("VIDEOTREE_TEST_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In the profile `deep` every property test tries more: a test's own number of examples outranks a profile's."""
    if PROFILE != "deep":
        return
    for item in items:
        test = getattr(item, "obj", None)
        own = getattr(test, "_hypothesis_internal_use_settings", None)
        if test is not None and own is not None:
            deeper = settings(own, max_examples=own.max_examples * DEEPER, deadline=None)
            getattr(test, "__func__", test)._hypothesis_internal_use_settings = deeper
            item.add_marker(pytest.mark.timeout(1800))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("container"):
        _need("docker", _docker_fault())
    if item.get_closest_marker("redis"):
        _need("redis", None if shutil.which("redis-server") else "no redis-server on PATH; install redis-server")
    if item.get_closest_marker("public_data"):
        _need("data", _data_fault())


@pytest.fixture(scope="session")
def public_data() -> Path:
    """The folder of the public data sets (`nextqa/`, `text_mcq/`, `sse/`): VIDEOTREE_TEST_DATA, else ../shared/data."""
    _need("data", _data_fault())
    return DATA


def _data_fault() -> str | None:
    return None if DATA.is_dir() else f"no public data at {DATA}; set VIDEOTREE_TEST_DATA to its folder"


def _need(name: str, fault: str | None) -> None:
    if fault is None:
        return
    if name in os.environ.get("VIDEOTREE_REQUIRE", "").split(","):
        pytest.fail(f"VIDEOTREE_REQUIRE asks for {name}: {fault}", pytrace=False)
    pytest.skip(fault)


@cache
def _docker_fault() -> str | None:
    if shutil.which("docker") is None:
        return "no docker client on PATH"
    try:
        done = subprocess.run(["docker", "info"], capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return "the Docker engine doesn't answer"
    return None if done.returncode == 0 else "no Docker engine answers"
