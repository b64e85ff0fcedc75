"""DEP-1 and DEP-3 as far as they can be held without an engine."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
SERVICES = ("store", "inference", "gate", "evolver")


def _script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, DEPLOY / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compose(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))
    return document


TARGET = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.11.2",
    "python_version": "3.11",
    "sys_platform": "linux",
    "glibc": "2.36",
}


def test_dep_3_markers_of_the_lock_are_settled_for_the_image_not_for_this_host() -> None:
    lock = (
        "early==1 ; python_full_version < '3.11.3' \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
        "late==2 ; python_full_version >= '3.11.3' \\\n    --hash=sha256:cc\n"
        "windows==3 ; sys_platform == 'win32' \\\n    --hash=sha256:dd\n"
        "always==4 \\\n    --hash=sha256:ee\n"
    )
    settled = _script("download_wheels.py").settled(lock, TARGET)
    assert settled.splitlines() == [
        "early==1 --hash=sha256:aa --hash=sha256:bb",
        "always==4 --hash=sha256:ee",
    ]


def test_dep_3_only_platforms_that_the_images_c_library_can_load_are_asked_for() -> None:
    tags = _script("download_wheels.py").platform_tags({**TARGET, "glibc": "2.19"})
    assert tags == [
        "manylinux_2_19_x86_64",
        "manylinux_2_18_x86_64",
        "manylinux_2_17_x86_64",
        "manylinux2014_x86_64",
    ]


def test_dep_1_the_dashboard_is_what_its_script_writes() -> None:
    script = _script("observability/dashboard.py")
    assert script.OUT.read_text(encoding="utf-8") == script.text()


@pytest.mark.parametrize("service", SERVICES)
def test_dep_1_prometheus_asks_each_service_at_its_default_metrics_port(service: str) -> None:
    prometheus = yaml.safe_load((DEPLOY / "observability/prometheus.yml").read_text(encoding="utf-8"))
    targets = {
        target for job in prometheus["scrape_configs"] for each in job["static_configs"] for target in each["targets"]
    }
    assert f"{service}:{9051 + SERVICES.index(service)}" in targets


def test_dep_1_gpus_are_reserved_for_the_model_servers_only() -> None:
    services = _compose("compose.gpu.yaml")["services"]
    reserved = {
        name: service["deploy"]["resources"]["reservations"]["devices"][0]
        for name, service in services.items()
        if "deploy" in service
    }
    assert set(reserved) == {"vllm-agent", "vllm-vision"}
    assert all(device["driver"] == "nvidia" and device["capabilities"] == ["gpu"] for device in reserved.values())


@pytest.mark.parametrize("name", ["compose.yaml", "compose.gpu.yaml", "compose.cpu.yaml", "compose.observability.yaml"])
def test_dep_1_every_published_port_is_on_loopback(name: str) -> None:
    services = _compose(name)["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_dep_1_every_variable_of_the_compose_files_has_a_default() -> None:
    for path in DEPLOY.glob("compose*.yaml"):
        for expression in re.findall(r"(?<!\$)\$\{([^}]*)\}", path.read_text(encoding="utf-8")):
            assert re.match(r"[A-Z_]+:?-", expression), f"{path.name}: {expression}"


@pytest.mark.parametrize("service", [*SERVICES, "trainer", "simulator"])
def test_dep_1_a_stop_is_never_cut_off(service: str) -> None:
    definition = _compose("compose.yaml")["services"][service]
    assert int(definition["stop_grace_period"].removesuffix("s")) > 10
