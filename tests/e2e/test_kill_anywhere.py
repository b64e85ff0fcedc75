"""QUA-11, TRN-11 and STO-14: a training through `kill -9` of random processes decides what an undisturbed one does.

`python -m bench.kill_anywhere --kills 50` is the long form. VIDEOTREE_KILLS sets the kills of this short one.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.decided import decided, differences, faults
from bench.house import HouseApart, HouseEmbedded, processes_on
from bench.kill_anywhere import RUN, Disturbance, Killing, train

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kill-anywhere"), pytest.mark.timeout(900)]

KILLS = int(os.environ.get("VIDEOTREE_KILLS", "4"))
SETTINGS = {"VIDEOTREE_TRAINER_GATE_N_MAX": "12", "VIDEOTREE_TRAINER_HOLDOUT_TEST": "false"}
SIZE = ("--epochs", "1", "--steps", "1", "--batch-size", "24")

PHASES = ("starting the embedded", "baseline (", "diagnosis", "val: initial", "rollout", "gate (", "val: final")


@dataclass(frozen=True)
class Pair:
    undisturbed: HouseApart
    killed: HouseApart
    disturbance: Disturbance


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    undisturbed = HouseApart(tmp_path_factory.mktemp("undisturbed"), SETTINGS)
    train(undisturbed, SIZE, Killing(0, (1, 1)), random.Random(0))
    killed = HouseApart(tmp_path_factory.mktemp("killed"), SETTINGS)
    return Pair(undisturbed, killed, train(killed, SIZE, Killing(KILLS, (2, 4)), random.Random(11)))


def test_qua_11_a_training_through_kills_decides_the_same_row_by_row(pair: Pair) -> None:
    assert len(pair.disturbance.kills) == KILLS, pair.disturbance
    assert differences(pair.undisturbed.data, pair.killed.data) == []


def test_qua_11_the_training_decided_something(pair: Pair) -> None:
    rows = decided(pair.killed.data)
    for table in ("gate_evidence", "quadrant_pairs", "step_reports", "evolution_records", "dual_metric", "gate_pools"):
        assert rows[f"workspaces/kill/{table}"], table
    actions = {row["gate_action"] for row in rows["workspaces/kill/step_reports"].values()}
    assert {action.partition("_")[0] for action in actions} >= {"ACCEPT", "REJECT"}


def test_qua_11_nothing_unfinished_and_no_process_is_left(pair: Pair) -> None:
    for house in (pair.undisturbed, pair.killed):
        assert faults(house.data) == []
        assert processes_on(house.data) == {}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE step_reports SET w = w + 1 WHERE rowid = 1", "w is"),
        ("DELETE FROM gate_evidence WHERE rowid = 2", "missing"),
        ("INSERT INTO gate_pools SELECT run_id, 'more', estimate, 1, 0 FROM gate_pools LIMIT 1", "too many"),
        ("UPDATE checkpoints SET trainer_state_json = '{}'", "trainer_state_json"),
    ],
)
def test_a_row_that_differs_is_found(pair: Pair, tmp_path: Path, change: str, told: str) -> None:
    changed = _copy(pair.undisturbed.data, tmp_path)
    with closing(sqlite3.connect(changed / "workspaces" / "kill" / "harness.db")) as connection, connection:
        assert connection.execute(change).rowcount == 1
    lines = differences(pair.undisturbed.data, changed)
    assert len(lines) == 1
    assert told in lines[0]


def test_unfinished_work_an_uncommitted_version_and_evidence_without_answers_are_found(
    pair: Pair, tmp_path: Path
) -> None:
    changed = _copy(pair.undisturbed.data, tmp_path)
    workspace = changed / "workspaces" / "kill"
    (workspace / ".tmp-manifest.json-1").touch()
    (workspace / "skills" / "v99").mkdir()
    with closing(sqlite3.connect(workspace / "harness.db")) as connection, connection:
        connection.execute("DELETE FROM predictions WHERE run_id LIKE '%_cand'")
    lines = "\n".join(faults(changed))
    assert "unfinished work" in lines
    assert "skills/v99 without its row or folder" in lines
    assert "the answers say [None]" in lines


def test_trn_11_stopped_in_every_phase_it_says_how_to_go_on_and_decides_the_same(pair: Pair, tmp_path: Path) -> None:
    house = HouseEmbedded(tmp_path, SETTINGS)
    command = ("train", "--run-id", RUN, *SIZE, *house.flags())
    for phase in (
        "starting the embedded",
        "baseline (",
        "diagnosis",
        "val: initial",
        "rollout",
        "gate (",
        "val: final",
    ):
        code, last = _interrupted(house, command, phase)
        assert (code, last.partition(";")[0]) == (130, "interrupted"), (phase, last)
        assert processes_on(house.data) == {}
        if "--resume" in last:
            command = tuple(last.rpartition("videotree ")[2].split())
    assert command == ("train", "--resume", RUN, *house.flags())
    assert house.start_trainer(*command).wait(600) == 0
    assert differences(pair.undisturbed.data, house.data) == []


def test_trn_11_a_killed_embedded_service_ends_the_command_by_name(tmp_path: Path) -> None:
    house = HouseEmbedded(tmp_path, SETTINGS)
    trainer = house.start_trainer("train", "--run-id", RUN, *SIZE, *house.flags())
    _until(house, "baseline (")
    house.kill("simulator")
    assert trainer.wait(60) == 1
    last = house.log.read_text().splitlines()[-1]
    assert last.startswith("error: simulator was killed by signal 9 (Killed)")
    assert last.endswith("the same command goes on where it can")
    assert processes_on(house.data) == {}


def _interrupted(house: HouseEmbedded, command: tuple[str, ...], phase: str) -> tuple[int, str]:
    trainer = house.start_trainer(*command)
    _until(house, phase)
    trainer.send_signal(signal.SIGINT)
    code = trainer.wait(120)
    return code, house.log.read_text().splitlines()[-1]


def _until(house: HouseEmbedded, words: str) -> None:
    deadline = time.monotonic() + 300
    while words not in house.log.read_text():
        assert "trainer" in house.pids(), house.log.read_text()
        assert time.monotonic() < deadline, house.log.read_text()
        time.sleep(0.02)


def _copy(data: Path, folder: Path) -> Path:
    return Path(shutil.copytree(data, folder / "data"))
