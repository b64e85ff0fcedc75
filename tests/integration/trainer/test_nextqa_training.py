"""A whole training on real questions and captions: an accepted rule leads back to the wrong answers that caused it."""

import csv
import html
import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from services.simulator.adapters.world_file import load_knowledge
from services.simulator.domain.world import Proposal
from services.trainer.adapters.report_edits import CATEGORIES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[3]
NEXTQA = ROOT / "examples" / "nextqa"
TYPE = "DO"
"""Descriptive Other: 305 questions about 232 videos, the type whose questions the captions answer best."""
SMALLER = {
    "batch_size": "70",
    "max_steps_per_epoch": "2",
    "gate_cooldown": "0",
    "epochs": "1",
    "test_size": "40",
    "val_wrong_min": "10",
}
SIMULATED = ("--simulated", "--world", str(NEXTQA / "world.toml"))


@dataclass
class Trained:
    """What the commands left behind."""

    questions: dict[str, dict[str, Any]]
    summary: dict[str, Any]
    page: str

    @property
    def accepted(self) -> list[str]:
        """The block of each accepted edit on the page."""
        block = self.page[self.page.index("<h2>Accepted edits</h2>") : self.page.index("<h2>Gates</h2>")]
        return block.split("<h3>")[1:]


def videotree(folder: Path, *arguments: str) -> None:
    """One command on the folder's data, with the example's configuration made smaller."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("VIDEOTREE_", "LLM_"))}
    environment |= {f"VIDEOTREE_TRAINER_{name.upper()}": value for name, value in SMALLER.items()}
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "gen")]),
        "VIDEOTREE_CONFIG": str(NEXTQA / "videotree.toml"),
    }
    command = [sys.executable, "-m", "services.trainer.main", *arguments, "--data", str(folder / "data")]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert ended.returncode == 0, ended.stderr


def one_type(source: Path, target: Path) -> None:
    """The data set's own rows of one type."""
    with source.open(newline="", encoding="utf-8") as rows, target.open("w", newline="", encoding="utf-8") as kept:
        reader = csv.DictReader(rows)
        writer = csv.DictWriter(kept, reader.fieldnames or [])
        writer.writeheader()
        writer.writerows(row for row in reader if row["type"] == TYPE)


@pytest.fixture(scope="module")
def trained(public_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("nextqa")
    questions, captions = folder / "questions.csv", public_data / "nextqa" / "nextqa_allcaps_1fps.zip"
    one_type(public_data / "nextqa" / "nextqa_val.csv", questions)
    videotree(folder, "import", "nextqa", "--questions", str(questions), "--captions", str(captions))
    videotree(folder, "baseline", *SIMULATED)
    videotree(folder, "split")
    videotree(folder, "seed", "create", "nextqa")
    videotree(folder, "train", "--seed", "nextqa", "--run-id", "real", *SIMULATED)
    videotree(folder, "report", "real", "--workspace", "real")
    reports = folder / "data" / "workspaces" / "real" / "reports" / "real"
    lines = (folder / "data" / "library" / "questions" / "nextqa.jsonl").read_text(encoding="utf-8").splitlines()
    found = {record["question_id"]: record for record in map(json.loads, lines)}
    page = (reports / "report.html").read_text(encoding="utf-8")
    return Trained(found, json.loads((reports / "summary.json").read_text()), page)


def named_cases(block: str) -> list[dict[str, str]]:
    """The wrong answers that an accepted edit names, as the page tells them."""
    part = block[block.index("Wrong answers that it names") :].split("Other wrong answers that the optimizer saw")[0]
    found = []
    for text in part.split("<summary>")[1:]:
        fields = dict(re.findall(r"<dt>([^<]+)</dt><dd[^>]*>(.*?)</dd>", text, re.DOTALL))
        found.append(
            {"question_id": text.split(" · ")[0], **{name: html.unescape(each) for name, each in fields.items()}}
        )
    return found


def proposal_in(block: str) -> Proposal:
    """The world's proposal whose text the diff of the block adds."""
    added = html.unescape("\n".join(re.findall(r'<span class="added">(.*?)</span>', block)))
    stock = load_knowledge(NEXTQA / "world.toml").world.evolve.proposals
    return next(one for one in stock if one.text in added)


def test_gat_8_an_edit_is_accepted_on_real_captions_by_the_gates_own_statistics(trained: Trained) -> None:
    accepted = [gate for gate in trained.summary["gates"] if gate["decision"].startswith("ACCEPT")]
    assert len(trained.accepted) == len(accepted) > 0
    for gate in accepted:
        assert gate["w"] > 2 * gate["l"]
        assert gate["e_value"] >= 3


def test_trn_13_the_report_names_the_wrong_questions_that_caused_an_accepted_rule(trained: Trained) -> None:
    for block in trained.accepted:
        cases = named_cases(block)
        assert cases
        for case in cases:
            question = trained.questions[case["question_id"]]
            right = f"{question['answer']}. {question['options']['ABCDE'.index(question['answer'])]}"
            assert case["right is"] == right != case["answered"]
            assert case["options"].split("<br>")["ABCDE".index(question["answer"])] == right
            assert case["opened"]
            assert case["because"]


def test_evo_6_the_accepted_rule_answers_the_diagnoses_of_the_cases_it_names(trained: Trained) -> None:
    for block in trained.accepted:
        proposal, cases = proposal_in(block), named_cases(block)
        categories = Counter(case["diagnosis"].split(" (")[0] for case in cases)
        assert set(categories) <= set(proposal.answers) <= set(CATEGORIES)
        assert proposal.why in html.unescape(block)
        for case in cases:
            if case["diagnosis"].startswith("missed_nodes"):
                assert case["missed"].split(" [")[0] in case["because"]
