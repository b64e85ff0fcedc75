"""QUA-14: keys planted in the environment and in files are nowhere to be seen after a whole small training."""

import asyncio
import contextlib
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bench.children import python_child, simulator, until_listening
from services.runtime.bundled import bundled_path
from services.runtime.testing import free_port
from services.trainer.adapters.embedded_stack import SERVICES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FROM_ENVIRONMENT = "sk-planted-environment-7c21f9"
FROM_FILE = "sk-planted-file-03be88"
TOKEN = "token-planted-51ad60"
SMALL = {
    "VIDEOTREE_TRAINER_GATE_N_MAX": "10",
    "VIDEOTREE_TRAINER_HOLDOUT_TEST": "false",
    "VIDEOTREE_RUNTIME_LOG_LEVEL": "DEBUG",
}
FAULTS = '\n[faults]\nretry_after = "0"\n[faults.rates]\nserver_error = 0.02\nbad_request = 0.002\nhtml = 0.01\n'


def environment_of(folder: Path, ports: Mapping[str, int], model_port: int) -> dict[str, str]:
    """Keys and token planted, and everything that a training needs."""
    (folder / "judge-key").write_text(FROM_FILE + "\n")
    (folder / "token").write_text(TOKEN + "\n")
    models = {f"{role}_LLM_MODEL": f"sim-{role.lower()}" for role in ("JUDGE", "EVOLVE", "TOOL", "VISION")}
    addresses = {f"VIDEOTREE_{name.upper()}_ADDRESS": f"127.0.0.1:{ports[name]}" for name in SERVICES}
    return {
        **SMALL, **models, **addresses,
        "LLM_MODEL": "sim-agent", "LLM_BASE_URL": f"http://127.0.0.1:{model_port}/v1", "LLM_API_KEY": FROM_ENVIRONMENT,
        "JUDGE_LLM_API_KEY_FILE": str(folder / "judge-key"), "VIDEOTREE_TOKEN_FILE": str(folder / "token"),
        "VIDEOTREE_DATA": str(folder / "data"), "VIDEOTREE_CACHE_DIR": str(folder / "cache"),
        "VIDEOTREE_INFERENCE_SEED_FROM_SALT": "true", "VIDEOTREE_INFERENCE_RETRY_BASE_SECONDS": "0.01",
    }  # fmt: skip


async def videotree(folder: Path, environment: Mapping[str, str], *arguments: str) -> int:
    """Runs the command line; what it says is in a log of the folder."""
    async with python_child("services.trainer.main", *arguments, folder=folder, environment=environment) as process:
        return await process.wait()


def written_under(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file there but those in which the keys were planted."""
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in ("judge-key", "token"):
            yield path, path.read_bytes()


def metrics_of(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        text: str = page.read().decode()
        return text


async def test_qua_14_planted_keys_are_in_no_log_row_error_metric_or_report(tmp_path):
    ports = {name: free_port() for name in SERVICES}
    metrics_ports = {name: free_port() for name in SERVICES}
    sample = bundled_path("examples") / "sample"
    (tmp_path / "questions.jsonl").write_bytes((sample / "questions.jsonl").read_bytes())
    async with contextlib.AsyncExitStack() as stack:
        model = await stack.enter_async_context(simulator(tmp_path, (sample / "world.toml").read_text() + FAULTS))
        environment = environment_of(tmp_path, ports, model.port)
        for name in SERVICES:
            arguments = ("--port", str(ports[name]), "--metrics-port", str(metrics_ports[name]))
            child = python_child(f"services.{name}.main", *arguments, folder=tmp_path, environment=environment)
            await stack.enter_async_context(child)
        for port in (*ports.values(), *metrics_ports.values()):
            await until_listening(port)
        run = ("train", "--demo", "--run-id", "small", "--steps", "1", "--batch-size", "16")
        assert await videotree(tmp_path, environment, *run) == 0
        for command in (("report", "small"), ("config", "show"), ("models",), ("doctor",)):
            await videotree(tmp_path, environment, *command)
        wrong = {**environment, "VIDEOTREE_STORE_ADDRESS": f"127.0.0.1:{free_port()}"}
        assert await videotree(tmp_path, wrong, "--debug", "runs") == 1
        metrics = {name: await asyncio.to_thread(metrics_of, port) for name, port in metrics_ports.items()}
    seen = dict(written_under(tmp_path))
    names = {path.name for path in seen}
    assert {"report.html", "summary.json", "services.trainer.main.log", "services.inference.main.log"} <= names
    assert any(path.suffix == ".db" for path in seen)
    assert all(metrics.values())
    for secret in (FROM_ENVIRONMENT, FROM_FILE, TOKEN):
        assert [path for path, content in seen.items() if secret.encode() in content] == []
        assert [name for name, page in metrics.items() if secret in page] == []


def test_the_planted_keys_would_be_found(tmp_path):
    """The search itself: a file that holds a key is seen."""
    (tmp_path / "log").write_text(f"calling with {TOKEN}")
    assert [path.name for path, content in written_under(tmp_path) if TOKEN.encode() in content] == ["log"]
