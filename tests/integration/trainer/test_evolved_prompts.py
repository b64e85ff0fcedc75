"""EVO-12 over the embedded stack and the simulated model: `targets = ["skills", "system", "tools"]`."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from services.skills import front_matter_span, section_spans
from services.templates import parse_template

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "examples" / "sample"
FROZEN = ("## Output format", "## Tools", "## Tree structure")
ADVICE = (
    "Use one search per option, and open the frames of the event that fits best. "
    "Where a moment is named, look at the neighbouring events. Count a repeated action in all scenes, one by one."
)
PROPOSALS = f"""
[[evolve.proposals]]
quality = "helpful"
task_types = ["prompt"]
text = {json.dumps(ADVICE)}

[[evolve.proposals]]
quality = "neutral"
text = "Keep the reasoning short and name the node that decided the matter."
"""


def write_world(folder: Path) -> None:
    """The sample's world with an agent that makes no slips, and with an optimizer that can help only by the prompt."""
    text = (SAMPLE / "world.toml").read_text()
    for name, value in (("follow_rate", "1.0"), ("slip_rate", "0.0"), ("noise", "0.0")):
        text = re.sub(rf"^{name} = [0-9.]+", f"{name} = {value}", text, flags=re.MULTILINE)
    text = text[: text.index("[evolve]")].replace('"questions.jsonl"', json.dumps(str(SAMPLE / "questions.jsonl")))
    evolve = f"[evolve]\nbadly_formed_rate = 0.0\n[evolve.mixture]\nhelpful = 1.0\n{PROPOSALS}"
    (folder / "world.toml").write_text(text + evolve)


VARIABLES = {
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "gen")]),
    "VIDEOTREE_TRAINER_TARGETS": '["skills", "system", "tools"]',
    "VIDEOTREE_TRAINER_PROMPT_EVERY": "1",
    "VIDEOTREE_TRAINER_HOLDOUT_TEST": "false",
    "VIDEOTREE_TRAINER_GATE_N_MAX": "100",
}


def train(folder: Path, *arguments: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VIDEOTREE_", "LLM_"))}
    command = [sys.executable, "-m", "services.trainer.main", "train", "--demo", "--data", "data"]
    command += ["--world", str(folder / "world.toml"), *arguments]
    with (folder / "log").open("w") as log:
        ended = subprocess.run(command, cwd=folder, env={**kept, **VARIABLES}, stdout=log, stderr=log, timeout=550)
    assert ended.returncode == 0, (folder / "log").read_text()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evolved")
    write_world(folder)
    train(folder, "--run-id", "evolved", "--steps", "2", "--batch-size", "30")
    return folder / "data" / "workspaces" / "evolved"


def summary_of(workspace: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((workspace / "reports" / "evolved" / "summary.json").read_text())
    return summary


def rows(workspace: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"file:{workspace / 'harness.db'}?mode=ro", uri=True) as connection:
        return connection.execute(query).fetchall()


def test_evo_12_prompt_candidates_reach_the_gate_and_get_verdicts(trained: Path) -> None:
    gates = {(gate["step"], gate["task_type"]): gate for gate in summary_of(trained)["gates"]}
    system, extract = gates[0, "prompt agent.system"], gates[1, "prompt tools.extract"]
    assert (system["decision"], system["accepted_version"]) == ("ACCEPT_CONFIRMED", "v2")
    assert system["cand_accuracy"] > system["base_accuracy"]
    assert extract["decision"].startswith(("ACCEPT_CONFIRMED", "REJECT_"))
    judged = rows(trained, "SELECT DISTINCT unit_id FROM gate_evidence WHERE task_type = 'prompt agent.system'")
    pools = json.loads((trained / "pools.json").read_text())
    kinds = {unit["unit_id"]: unit["task_type"] for unit in pools["units"]}
    assert len({kinds[unit_id] for (unit_id,) in judged}) > 1, "a prompt is judged by units of several types"


def test_evo_12_the_published_prompt_differs_outside_the_frozen_sections_alone(trained: Path) -> None:
    before, after = (
        (trained / "prompts" / version / "agent.system.md").read_bytes().decode() for version in ("v1", "v2")
    )
    assert ADVICE in after
    assert ADVICE not in before
    for text in (before, after):
        assert [title for title, _ in section_spans(text, FROZEN)] == list(FROZEN)
    old, new = ([span.of(text) for _, span in section_spans(text, FROZEN)] for text in (before, after))
    assert new == old
    assert front_matter_span(after).of(after) == front_matter_span(before).of(before)
    assert "<skills>\n{{skills}}\n</skills>" in after
    assert parse_template("agent.system", after).placeholders == ("skills",)
    others = [path.name for path in (trained / "prompts" / "v1").iterdir() if path.suffix == ".md"]
    for name in others:
        if name != "agent.system.md":
            assert (trained / "prompts" / "v2" / name).read_bytes() == (trained / "prompts" / "v1" / name).read_bytes()


def test_evo_12_the_accepted_prompt_is_in_force_in_the_next_step(trained: Path) -> None:
    summary = summary_of(trained)
    assert (summary["prompts_version_before"], summary["prompts_version_after"].startswith("v")) == ("v1", True)
    assert summary["prompts_version_after"] != "v1"
    bases = dict(rows(trained, "SELECT step, base_version FROM evolution_records WHERE task_type LIKE 'prompt %'"))
    assert bases == {0: "v1", 1: "v2"}
    drawn = rows(
        trained,
        "SELECT DISTINCT prompts_version FROM baseline_cache WHERE run_id LIKE 'evolved\\_e0\\_s1\\_gate%' ESCAPE '\\'",
    )
    assert drawn == [("v2",)], "a new prompt's base is drawn afresh"
    assert summary["val_accuracy_after"] > summary["val_accuracy_before"]


def test_evo_12_rollouts_get_better_with_the_prompt_while_the_skills_stay(trained: Path) -> None:
    def share(step: int) -> float:
        found = rows(trained, f"SELECT correct FROM predictions WHERE run_id = 'evolved_e0_s{step}'")
        return sum(correct for (correct,) in found) / len(found)

    assert share(1) > share(0)


def test_trn_11_a_run_that_changed_its_own_prompts_can_be_taken_up_again(trained: Path) -> None:
    before = summary_of(trained)["gates"]
    train(trained.parents[2], "--resume", "evolved", "--steps", "2", "--batch-size", "30")
    assert summary_of(trained)["gates"] == before
