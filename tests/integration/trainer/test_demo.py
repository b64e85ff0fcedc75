"""The main job, as a person starts it: `videotree train --demo` on an empty data root, with real child processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[3]
UNCERTAIN = {"launched"}
"""How far a gate looked ahead depends on the machine; nothing is decided by it."""
COSTS = {
    "wall_seconds",
    "summary",
    "workspace_path",
    "model_calls",
    "cache_hits",
    "prompt_tokens",
    "completion_tokens",
    "calls_without_usage",
}
"""Figures of time and cost: a resumed run pays for what the crash lost."""


@dataclass
class Finished:
    """A command that ended."""

    code: int
    output: str
    errors: str


def start(*arguments: str, log: Path, variables: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "services.trainer.main", *arguments]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "gen")])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("VIDEOTREE_", "LLM_"))}
    with log.open("w") as errors:
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=log.parent,
            env={**environment, "PYTHONPATH": paths, **(variables or {})},
        )


def run(*arguments: str, log: Path, variables: Mapping[str, str] | None = None) -> Finished:
    process = start(*arguments, log=log, variables=variables)
    output, _ = process.communicate(timeout=500)
    return Finished(process.returncode, output, log.read_text())


def wait_for(text: str, log: Path, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 300
    while text not in log.read_text():
        assert process.poll() is None, f"ended before {text!r}:\n{log.read_text()}"
        assert time.monotonic() < deadline, f"no {text!r} in time:\n{log.read_text()}"
        time.sleep(0.1)


def decided(summary: dict[str, Any]) -> dict[str, Any]:
    """What a run decided, without time and cost."""
    kept = {key: value for key, value in summary.items() if key not in COSTS}
    kept["gates"] = [{key: gate[key] for key in gate if key not in UNCERTAIN} for gate in summary["gates"]]
    return kept


def children_of(root: Path) -> list[str]:
    """Command lines of processes that work on this data root."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"VIDEOTREE_DATA={root}".encode() in environment and "services." in command:
            found.append(command)
    return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Finished]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, run("train", "--demo", "--data", "data", "--run-id", "same", log=folder / "log")


def summary_of(folder: Path) -> dict[str, Any]:
    path = folder / "data" / "workspaces" / "same" / "reports" / "same" / "summary.json"
    summary: dict[str, Any] = json.loads(path.read_text())
    return summary


def test_cli_1_the_demo_ends_well_and_its_last_line_names_the_summary(demo: tuple[Path, Finished]) -> None:
    folder, ended = demo
    assert ended.code == 0, ended.errors
    last = ended.output.rstrip().splitlines()[-1]
    assert last.startswith("summary: ")
    assert Path(last.removeprefix("summary: ")).samefile(
        folder / "data" / "workspaces" / "same" / "reports" / "same" / "summary.json"
    )


def test_cli_1_the_last_lines_tell_each_verdict_with_its_evidence(demo: tuple[Path, Finished]) -> None:
    folder, ended = demo
    for gate in summary_of(folder)["gates"]:
        word = "accepted" if gate["decision"].startswith("ACCEPT") else "rejected"
        into = f"  -> {gate['accepted_version']}" if gate["accepted_version"] else ""
        where = f"{gate['epoch']}.{gate['step']}  {gate['task_type']}"
        counts = f"W {gate['w']}  L {gate['l']}  E {gate['e_value']:.3g}"
        assert f"{word}  {where}: {gate['decision']}{into}  {counts}" in ended.output
    assert "val accuracy" in ended.output


def test_an_edit_is_accepted_and_one_rejected_and_the_accepted_skill_holds_it(demo: tuple[Path, Finished]) -> None:
    folder, _ = demo
    gates = summary_of(folder)["gates"]
    accepted = [gate for gate in gates if gate["decision"].startswith("ACCEPT")]
    assert accepted
    assert [gate for gate in gates if gate["decision"].startswith("REJECT")]
    skills = folder / "data" / "workspaces" / "same" / "skills"
    for gate in accepted:
        new = skills / gate["accepted_version"]
        old = skills / f"v{int(gate['accepted_version'][1:]) - 1}"
        name = f"{gate['task_type'].lower().replace(' ', '-')}.md"
        assert len((new / name).read_text()) > len((old / name).read_text())


def test_no_process_is_left_behind(demo: tuple[Path, Finished]) -> None:
    folder, _ = demo
    assert children_of(folder / "data") == []


def test_qua_11_interrupted_killed_and_resumed_it_decides_the_same(demo: tuple[Path, Finished], tmp_path: Path) -> None:
    """Also TRN-11: two fresh data roots, one run id, the same verdicts, versions and evidence."""
    log, data = tmp_path / "log", ("--demo", "--data", "data")
    process = start("train", *data, "--run-id", "same", log=log)
    wait_for("epoch 0 step 0  gate", log, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130, log.read_text()
    assert "videotree train --resume same --demo --data data" in log.read_text()
    assert children_of(tmp_path / "data") == []

    process = start("train", "--resume", "same", *data, log=log)
    wait_for("epoch 0 step 1  rollout", log, process)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while children_of(tmp_path / "data") and time.monotonic() < deadline:
        time.sleep(0.2)
    assert children_of(tmp_path / "data") == [], "the services outlived a killed trainer"

    ended = run("train", "--resume", "same", *data, log=log)
    assert ended.code == 0, ended.errors
    assert decided(summary_of(tmp_path)) == decided(summary_of(demo[0]))


def test_trn_12_a_budget_ends_with_exit_code_3_and_says_how_to_go_on(demo: tuple[Path, Finished]) -> None:
    folder, _ = demo
    ended = run("train", "--demo", "--data", "data", "--run-id", "poor", "--max-calls", "100", log=folder / "log")
    assert ended.code == 3, ended.errors
    assert "stopped by the budget" in ended.errors
    assert "--resume poor" in ended.errors
    runs = run("runs", "--data", "data", "--workspace", "poor", "--json", log=folder / "log")
    statuses = {row["run"]: row["status"] for row in json.loads(runs.output)}
    assert statuses["poor"] == "stopped"


def test_trn_13_the_report_is_one_page_that_asks_for_nothing_from_outside(demo: tuple[Path, Finished]) -> None:
    folder, _ = demo
    ended = run("report", "same", "--data", "data", "--output", "page.html", log=folder / "log")
    assert ended.code == 0, ended.errors
    page = (folder / "page.html").read_text()
    assert "default-src 'none'" in page
    assert '<script src="' not in page
    assert "<link" not in page
    for gate in summary_of(folder)["gates"]:
        assert gate["reason"].replace("'", "&#39;") in page


def test_trn_13b_an_endpoint_that_fails_every_call_ends_with_exit_code_1(demo: tuple[Path, Finished]) -> None:
    folder, _ = demo
    dead = {"LLM_BASE_URL": "http://127.0.0.1:9/v1", "LLM_MODEL": "none", "VIDEOTREE_INFERENCE_MAX_ATTEMPTS": "1"}
    command = ("baseline", "--workspace", "dead", "--dataset", "sample", "--data", "data")
    ended = run(*command, log=folder / "log", variables=dead)
    assert ended.code == 1, ended.errors
    assert "nothing is scored" in ended.errors
    assert "Traceback" not in ended.errors
