"""GAT-3, TRN-4, TRN-8: units of several questions through the whole product, with real services."""

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.questions import Question
from services.runtime.bundled import bundled_path
from services.trainer.adapters.embedded_stack import SERVICES, StackOptions, start_stack
from services.trainer.adapters.wiring import connected
from services.trainer.domain.evaluations import DualMetric, HoldoutTable
from services.trainer.domain.pools import Pools
from services.trainer.domain.run_ids import gate_prefix
from services.trainer.domain.runs import Prediction
from services.trainer.domain.step_rows import GateEvidenceRow

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[3]
CONFIG = """\
[trainer]
workspace = "pairs"
dataset = "pairs"
seed_name = "pairs"
test_size = 72
val_wrong_min = 10
epochs = 1
batch_size = 60
max_steps_per_epoch = 1
gate_n_max = 20
trainable_min_units = 4
"""


def paired_questions() -> list[dict[str, object]]:
    """The sample's questions, those of one type about one video made one unit; one unit in six stays single."""
    content = (bundled_path("examples") / "sample" / "questions.jsonl").read_bytes()
    records = [json.loads(line) for line in content.splitlines()]
    for number, record in enumerate(records):
        record["unit_id"] = f"{record['video_id']}/{record['task_type']}" if number % 12 < 10 else ""
    return records


@dataclass
class Trained:
    """What the store holds after the training."""

    questions: list[Question]
    pools: Pools
    baseline: list[Prediction]
    val_initial: list[Prediction]
    metrics: list[DualMetric]
    evidence: list[GateEvidenceRow]
    holdout: HoldoutTable
    arms: dict[str, list[Prediction]]

    def units(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for question in self.questions:
            found.setdefault(question.unit_id, []).append(question.question_id)
        return found


def videotree(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("VIDEOTREE_", "LLM_"))}
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "gen")]), "VIDEOTREE_CONFIG": "videotree.toml"}
    command = [sys.executable, "-m", "services.trainer.main", *arguments, "--data", "data"]
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=500, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("units")
    (folder / "videotree.toml").write_text(CONFIG)
    (folder / "pairs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in paired_questions()))
    videotree(folder, "import", "trees", str(bundled_path("examples") / "sample" / "trees"))
    videotree(folder, "import", "questions", "pairs.jsonl", "--dataset", "pairs")
    for command in (["baseline", "--simulated"], ["diagnose", "--simulated"], ["split"], ["seed", "create", "pairs"]):
        videotree(folder, *command)
    videotree(folder, "train", "--seed", "pairs", "--run-id", "joined", "--simulated")
    return asyncio.run(read_back(folder / "data"))


async def read_back(data: Path) -> Trained:
    stack = await start_stack(StackOptions(data, None, ("store",)))
    addresses = {**dict.fromkeys(SERVICES, "127.0.0.1:1"), **stack.addresses}
    try:
        async with connected(addresses, 60.0) as services:
            evidence = await services.ledger.gate_evidence("joined", "joined")
            metrics = await services.ledger.dual_metrics("joined", "joined")
            prefixes = {gate_prefix("joined", row.epoch, row.step, row.evidence.task_type) for row in evidence}
            arms = [f"{prefix}_{arm}" for prefix in sorted(prefixes) for arm in ("base", "cand")]
            return Trained(
                questions=await services.library.questions("pairs"),
                pools=(await services.workspaces.pools("joined"))[0],
                baseline=await services.runs.predictions("joined", "baseline"),
                val_initial=await services.runs.predictions("joined", metrics[0].measured_run_id),
                metrics=metrics,
                evidence=evidence,
                holdout=await services.ledger.holdout_table("joined", "joined"),
                arms={run_id: await services.runs.predictions("joined", run_id) for run_id in arms},
            )
    finally:
        await stack.stop()


def right_units(units: dict[str, list[str]], predictions: list[Prediction]) -> dict[str, bool]:
    """Units right only if each of their questions is; only units all of whose questions were answered."""
    correct = {each.question_id: each.correct for each in predictions}
    return {unit: all(correct[q] for q in ids) for unit, ids in units.items() if all(q in correct for q in ids)}


def test_trn_4_gat_3_the_split_keeps_each_unit_whole(trained: Trained) -> None:
    units = trained.units()
    assert sorted({len(ids) for ids in units.values()}) == [1, 2]
    pooled = {unit.unit_id: unit for unit in trained.pools.units}
    assert set(pooled) == set(units)
    assert all(sorted(pooled[unit].question_ids) == sorted(ids) for unit, ids in units.items())
    assert {unit.pool for unit in pooled.values()} == {"diag", "val", "test"}


def test_trn_8_gat_3_val_counts_units_and_a_unit_is_right_only_with_all_its_questions(trained: Trained) -> None:
    units = {unit.unit_id: list(unit.question_ids) for unit in trained.pools.units if unit.pool == "val"}
    outcomes = right_units(units, trained.val_initial)
    first = trained.metrics[0]
    assert first.unit_count == len(outcomes)
    assert first.unit_count < len(trained.val_initial), "val counted questions"
    assert first.hard == pytest.approx(sum(outcomes.values()) / len(outcomes))
    halves = [unit for unit, ids in units.items() if len(ids) > 1 and not outcomes.get(unit, True)]
    correct = {each.question_id for each in trained.val_initial if each.correct}
    assert any(correct & set(units[unit]) for unit in halves), (
        "no unit was half right, so the fold was never put to the test"
    )


def test_trn_9_gat_3_the_baseline_line_of_the_test_counts_units(trained: Trained) -> None:
    units = {unit.unit_id: list(unit.question_ids) for unit in trained.pools.units if unit.pool == "test"}
    outcomes = right_units(units, trained.baseline)
    line = next(each for each in trained.holdout.holdout_evals if each.how == "derived")
    assert (line.right_count, line.unit_count) == (sum(outcomes.values()), len(units))


def test_gat_3_gat_6_the_gate_folds_units_and_counts_each_once(trained: Trained) -> None:
    units = trained.units()
    assert trained.evidence, "no gate was run"
    seen = [(row.step, row.evidence.task_type, row.evidence.unit_id) for row in trained.evidence]
    assert len(seen) == len(set(seen))
    assert all(row.evidence.unit_id in units for row in trained.evidence)
    assert any(len(units[row.evidence.unit_id]) == 2 for row in trained.evidence)
    for row in trained.evidence:
        prefix = gate_prefix("joined", row.epoch, row.step, row.evidence.task_type)
        of_unit = {row.evidence.unit_id: units[row.evidence.unit_id]}
        base, cand = (right_units(of_unit, trained.arms[f"{prefix}_{arm}"]) for arm in ("base", "cand"))
        assert base == {row.evidence.unit_id: row.evidence.base_correct}
        assert cand == {row.evidence.unit_id: row.evidence.cand_correct}
