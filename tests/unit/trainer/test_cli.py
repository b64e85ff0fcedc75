"""The command line as a person meets it (CLI-2, CLI-3)."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from services.trainer.cli import running
from services.trainer.cli.app import GOLDEN_PATH, app
from services.trainer.cli.closing_lines import closing_lines
from services.trainer.cli.imports import imported_line
from services.trainer.cli.live_progress import LiveProgress
from services.trainer.cli.results import require_version
from services.trainer.cli.resuming import resume_hint, with_saved_settings
from services.trainer.cli.starting import TrainOptions
from services.trainer.config import TrainerConfig
from services.trainer.domain.errors import BudgetReached, TrainerError, WorkspaceProblem
from services.trainer.domain.gate_round import EvidenceRow, PairConsumed
from services.trainer.domain.runs import Run
from services.trainer.domain.schedule import Position
from services.trainer.use_cases.import_ports import Imported
from tests.fakes.trainer_services import services_of
from tests.fakes.trainer_world import World

runner = CliRunner()


def commands(group: typer.Typer, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for command in group.registered_commands:
        assert command.callback is not None
        yield (*prefix, command.name or command.callback.__name__)
    for sub in group.registered_groups:
        assert sub.typer_instance is not None
        yield from commands(sub.typer_instance, (*prefix, str(sub.name)))


ALL = sorted(commands(app))


def test_cli_2_every_command_of_the_specification_is_there() -> None:
    names = {command[0] for command in ALL}
    wanted = "up serve train plan baseline diagnose split seed import report runs diff export rollback backup restore"
    assert {*wanted.split(), "doctor", "models", "cache", "config", "gate"} <= names


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_cli_2_every_command_has_help_with_an_example(command: tuple[str, ...]) -> None:
    answer = runner.invoke(app, [*command, "--help"])
    assert answer.exit_code == 0
    assert f"Example: videotree {' '.join(command)}" in " ".join(answer.output.split())


@pytest.mark.parametrize(
    ("questions", "videos", "line"),
    [(900, 300, "imported 900 questions and 300 videos"), (0, 3, "imported 3 videos"), (5, 0, "imported 5 questions")],
)
def test_trn_1_the_last_line_of_an_import_tells_what_there_was(questions: int, videos: int, line: str) -> None:
    assert imported_line(Imported(questions, videos)) == line


@pytest.mark.parametrize("name", ["../x", "Upper", "a b", "", ".hidden", "a..b"])
def test_trn_1_a_name_that_no_question_set_can_have_is_wrong_use(name: str, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text("")
    answer = runner.invoke(app, ["import", "questions", str(file), "--dataset", name, "--data", str(tmp_path / "data")])
    assert answer.exit_code == 2
    assert not (tmp_path / "data").exists()


def test_cli_2_videotree_alone_says_what_it_is_for_and_the_golden_path() -> None:
    answer = runner.invoke(app, [])
    assert answer.exit_code == 0
    assert answer.output.strip() == GOLDEN_PATH
    for step in ("videotree import", "videotree doctor", "videotree train", "--demo"):
        assert step in GOLDEN_PATH


@pytest.mark.parametrize(
    "wrong",
    [
        ["nonsense"],
        ["train", "--epochs", "many"],
        ["serve", "nobody"],
        ["cache", "purge"],
        ["gate", "simulate", "--cell", "half"],
        ["gate", "simulate", "--cell", "0.9/0.9"],
        ["config", "show", "nothing"],
        ["export", "x", "--format", "zip"],
    ],
    ids=" ".join,
)
def test_cli_2_wrong_use_is_exit_code_2_without_a_traceback(wrong: list[str]) -> None:
    answer = runner.invoke(app, wrong)
    assert answer.exit_code == 2
    assert "Traceback" not in answer.output


def test_cli_3_an_unknown_key_names_the_key_and_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "videotree.toml"
    path.write_text("[trainer]\nepoch = 3\n")
    monkeypatch.setenv("VIDEOTREE_CONFIG", str(path))
    answer = runner.invoke(app, ["runs"])
    assert answer.exit_code == 2
    assert "unknown key epoch" in answer.output
    assert str(path) in answer.output


def test_cli_3_a_value_out_of_range_names_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIDEOTREE_TRAINER_VAL_RATIO", "1.5")
    answer = runner.invoke(app, ["split"])
    assert answer.exit_code == 2
    assert "VIDEOTREE_TRAINER_VAL_RATIO" in answer.output


def test_cli_3_config_show_tells_where_a_value_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIDEOTREE_TRAINER_EPOCHS", "7")
    answer = runner.invoke(app, ["config", "show", "trainer", "--json"])
    rows = {row["key"]: row for row in json.loads(answer.stdout)}
    assert (rows["epochs"]["value"], rows["epochs"]["source"]) == (7, "VIDEOTREE_TRAINER_EPOCHS")
    assert rows["batch_size"]["source"] == "default"


def test_cli_2_what_ends_a_command_is_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    async def failing(error: BaseException) -> None:
        raise error

    expected = {
        TrainerError("do this"): 1,
        ValueError("odd"): 1,
        BudgetReached("used up"): 3,
        KeyboardInterrupt(): 130,
        running.Interrupted("go on so"): 130,
    }
    for error, code in expected.items():
        with pytest.raises(typer.Exit) as ended:
            running.run_command(failing(error))
        assert ended.value.exit_code == code, error
    assert "Traceback" not in capsys.readouterr().err


def test_cli_2_debug_shows_where_an_error_arose(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(running.DEBUG_VARIABLE, "1")

    async def failing() -> None:
        raise TrainerError("do this")

    with pytest.raises(typer.Exit):
        running.run_command(failing())
    assert "Traceback" in capsys.readouterr().err


def test_trn_11_settings_that_nobody_sets_now_are_those_the_run_began_with() -> None:
    saved = Run("r", "train", config_json=json.dumps({"batch_size": 12, "epochs": 2}))
    assert with_saved_settings(TrainerConfig(), saved).batch_size == 12


def test_trn_14_services_that_are_configured_and_away_are_named_each_with_its_fix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("STORE", "INFERENCE", "GATE", "EVOLVER"):
        monkeypatch.setenv(f"VIDEOTREE_{name}_ADDRESS", "127.0.0.1:9")
    answer = runner.invoke(app, ["doctor", "--json"])
    findings = {each["name"]: each for each in json.loads(answer.stdout)}
    assert answer.exit_code == 1
    for name in ("store", "inference", "gate", "evolver"):
        assert findings[f"service {name}"]["status"] == "FAIL"
        assert findings[f"service {name}"]["fix"] == "videotree up"


async def test_cli_2_an_unknown_version_is_told_with_those_that_there_are() -> None:
    services = services_of(World())
    await require_version(services, "lab", "skills", "v1")
    with pytest.raises(WorkspaceProblem, match="workspace lab has no skills version v9; it has v1"):
        await require_version(services, "lab", "skills", "v9")


def test_trn_13_time_left_is_shown_only_where_it_can_be_told() -> None:
    progress = LiveProgress()
    console = Console(width=100, file=io.StringIO())

    def shown() -> str:
        console.file = io.StringIO()
        console.print(progress._render())
        return console.file.getvalue()

    progress.phase("proposals", position=Position(0, 1, 1))
    assert "epoch 0 step 1  proposals" in shown()
    assert "left" not in shown()
    progress.phase("gate", 30, Position(0, 1, 1))
    evidence = EvidenceRow(2, "u", base_correct=False, cand_correct=True, e_value=4.0, w=3, l=1)
    progress.gate_event(PairConsumed("Counting Problem", evidence, 6, 9, 40))
    line = next(line for line in shown().splitlines() if line.startswith("Counting Problem"))
    assert line.split() == ["Counting", "Problem", "3-1", "4", "6/9/40", "0", "..."]


def test_trn_11_the_command_that_goes_on_repeats_what_a_file_would_set_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "videotree.toml"
    path.write_text("[trainer]\nepochs = 2\n")
    monkeypatch.setenv("VIDEOTREE_CONFIG", str(path))
    chosen = TrainOptions(None, False, True, None, Path("here"), None, None, None, False)
    flags = {"epochs": 3, "batch_size": 60, "max_calls": 100}
    expected = "go on with: videotree train --resume run-1 --epochs 3 --simulated --data here"
    assert resume_hint("run-1", chosen, flags) == expected


def test_trn_13_the_closing_lines_say_what_is_missing_and_end_with_the_summary() -> None:
    summary = {
        "gates": [
            {
                "epoch": 0,
                "step": 1,
                "accepted_version": None,
                "decision": "REJECT_FUTILE",
                "task_type": "Counting Problem",
                "w": 2,
                "l": 1,
                "e_value": 0.667,
                "n_used": 30,
                "n_planned": 31,
                "detectable_gain": None,
            }
        ],
        "published_between_steps": [{"version": "v2", "description": "momentum of epoch 1: 6 skills"}],
        "stopped_early": True,
        "epochs": 2,
        "skills_version_before": "v1",
        "skills_version_after": "v1",
        "prompts_version_before": "v1",
        "prompts_version_after": "v1",
        "val_accuracy_before": 0.5,
        "val_accuracy_after": None,
        "test": [],
        "model_calls": 10,
        "cache_hits": 1,
        "wall_seconds": 2.0,
        "run_id": "r",
    }
    lines = closing_lines(summary, "/x/summary.json")
    assert lines[0].startswith("rejected  0.1  Counting Problem: REJECT_FUTILE  W 2  L 1  E 0.667")
    assert lines[1] == "published v2: momentum of epoch 1: 6 skills"
    assert lines[2] == "stopped early after 2 epochs: the last ones brought no better best on val"
    assert "val accuracy 50.0% -> not recorded" in lines[3]
    assert lines[-1] == "summary: /x/summary.json"
    assert not any(line.startswith("prompts ") for line in lines)
    evolved = closing_lines({**summary, "prompts_version_after": "v2"}, "/x/summary.json")
    assert "prompts v1 -> v2" in evolved
