"""DEP-1: what compose makes of the files together, with values from an .env file; nothing is started."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.containers.stack import ROOT, SERVICES, compose_command, run

pytestmark = pytest.mark.container

GIB = 2**30


def merged(tmp_path: Path, *overlays: str, **values: str) -> dict[str, Any]:
    """The configuration of compose.yaml with its overlays; `values` stand in the .env file."""
    example = (ROOT / "deploy" / ".env.example").read_text(encoding="utf-8")
    env_file = tmp_path / "env"
    env_file.write_text(example + "".join(f"{name}={value}\n" for name, value in values.items()), encoding="utf-8")
    files = [part for name in ("compose.yaml", *overlays) for part in ("-f", f"deploy/{name}")]
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    profiles = ["--profile", "demo", "--profile", "train"]
    text = run([*compose_command(), "--env-file", str(env_file), *files, *profiles, "config"], environment, 60)
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def seconds(duration: str) -> int:
    """`1800s` and `30m0s` alike."""
    units = {"h": 3600, "m": 60, "s": 1}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)([hms])", duration))


@pytest.fixture
def gpu(tmp_path: Path) -> dict[str, Any]:
    values = {"AGENT_GPUS": "0,1", "AGENT_TENSOR_PARALLEL": "2", "VISION_GPUS": "2", "AGENT_MODEL": "org/model"}
    services: dict[str, Any] = merged(tmp_path, "compose.gpu.yaml", **values)["services"]
    return services


def test_dep_1_each_model_server_reserves_the_gpus_that_the_env_file_names(gpu: dict[str, Any]) -> None:
    reserved = {
        name: service["deploy"]["resources"]["reservations"]["devices"]
        for name, service in gpu.items()
        if "devices" in service.get("deploy", {}).get("resources", {}).get("reservations", {})
    }
    assert reserved == {
        "vllm-agent": [{"driver": "nvidia", "device_ids": ["0,1"], "capabilities": ["gpu"]}],
        "vllm-vision": [{"driver": "nvidia", "device_ids": ["2"], "capabilities": ["gpu"]}],
    }


def test_dep_1_the_model_servers_serve_what_the_env_file_names(gpu: dict[str, Any]) -> None:
    agent, vision = gpu["vllm-agent"]["command"], gpu["vllm-vision"]["command"]
    assert {"--model=org/model", "--served-model-name=agent", "--tensor-parallel-size=2"} <= set(agent)
    assert {"--served-model-name=vision", "--tensor-parallel-size=1"} <= set(vision)


@pytest.mark.parametrize("server", ["vllm-agent", "vllm-vision"])
def test_dep_1_a_model_server_has_shared_memory_a_cache_of_models_and_time_to_start(
    gpu: dict[str, Any], server: str
) -> None:
    service = gpu[server]
    assert service["ipc"] == "private"
    assert service["shm_size"] in ("16gb", 16 * GIB, str(16 * GIB))
    assert seconds(service["healthcheck"]["start_period"]) == 1800
    mounts = [
        mount if isinstance(mount, str) else f"{mount['source']}:{mount['target']}" for mount in service["volumes"]
    ]
    assert [mount.removesuffix(":rw") for mount in mounts] == ["model-cache:/models"]
    assert service["environment"]["HF_HOME"] == "/models"
    assert "ports" not in service


def test_dep_1_inference_asks_the_model_servers_and_waits_for_their_health(gpu: dict[str, Any]) -> None:
    inference = gpu["inference"]
    environment = inference["environment"]
    assert environment["LLM_BASE_URL"] == "http://vllm-agent:8000/v1"
    assert environment["VISION_LLM_BASE_URL"] == "http://vllm-vision:8000/v1"
    assert (environment["LLM_MODEL"], environment["VISION_LLM_MODEL"]) == ("agent", "vision")
    for server in ("vllm-agent", "vllm-vision", "store", "redis"):
        assert inference["depends_on"][server]["condition"] == "service_healthy"


def test_dep_1_an_endpoint_of_ones_own_takes_the_simulated_models_place(tmp_path: Path) -> None:
    roles = ("TOOL", "VISION", "JUDGE", "EVOLVE")
    values = {"LLM_BASE_URL": "https://models.example.org/v1", "LLM_MODEL": "big", "SEED_FROM_SALT": "false"}
    services = merged(tmp_path, **values, **{f"{role}_LLM_MODEL": "" for role in roles})["services"]
    environment = services["inference"]["environment"]
    assert environment["LLM_BASE_URL"] == "https://models.example.org/v1"
    assert environment["LLM_MODEL"] == "big"
    assert [environment[f"{role}_LLM_MODEL"] for role in roles] == [""] * len(roles)


def test_dep_1_prometheus_and_grafana_come_after_each_other_and_read_what_is_mounted(tmp_path: Path) -> None:
    services = merged(tmp_path, "compose.observability.yaml")["services"]
    assert set(services) >= {"prometheus", "grafana", *SERVICES}
    for service in ("prometheus", "grafana"):
        for mount in services[service]["volumes"]:
            source = mount.split(":")[0] if isinstance(mount, str) else mount["source"]
            assert not source.startswith("/") or Path(source).exists(), source
    assert services["grafana"]["depends_on"]["prometheus"]["condition"] == "service_healthy"


def test_cli_5_tls_reaches_every_service_and_its_clients_beside_the_token(tmp_path: Path) -> None:
    services = merged(tmp_path, "compose.tls.yaml")["services"]
    for name in (*SERVICES, "trainer"):
        environment = services[name]["environment"]
        mounted = {secret["source"] if isinstance(secret, dict) else secret for secret in services[name]["secrets"]}
        assert mounted >= {"token", "tls_cert", "tls_key", "tls_ca"}
        for kind in ("CERT", "KEY", "CA"):
            assert environment[f"VIDEOTREE_TLS_{kind}_FILE"] == f"/run/secrets/tls_{kind.lower()}"
        assert environment["VIDEOTREE_TOKEN_FILE"] == "/run/secrets/token"
    assert "VIDEOTREE_TLS_CERT_FILE" not in services["simulator"]["environment"]
