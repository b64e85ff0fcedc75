"""TRN-5: which seed a training starts from, and what is said where a seed or workspace is missing."""

from pathlib import Path
from typing import Any

import pytest

from services.trainer.cli import starting
from services.trainer.cli.preparing import existing_workspace
from services.trainer.cli.session import Session
from services.trainer.cli.starting import TrainOptions, seed_to_train_from
from services.trainer.config import TrainerConfig
from services.trainer.domain.errors import WorkspaceProblem
from tests.fakes.trainer_services import services_of
from tests.fakes.trainer_world import Silent, World


def session(**settings: object) -> Session:
    return Session(services_of(World()), TrainerConfig.model_validate(settings), {})


def chosen(seed: str | None = None, workspace: str | None = None) -> TrainOptions:
    return TrainOptions(seed, False, False, None, Path("data"), None, None, workspace, False)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The seeds that were made."""
    names: list[str] = []

    async def prepare_seed(session: Session, progress: Any, name: str) -> str:
        names.append(name)
        return name

    monkeypatch.setattr(starting, "prepare_seed", prepare_seed)
    return names


async def test_trn_5_a_seed_that_only_the_configuration_names_is_made(made: list[str]) -> None:
    assert await seed_to_train_from(session(seed_name="mine"), chosen(), Silent()) == "mine"  # type: ignore[arg-type]
    assert made == ["mine"]


async def test_trn_5_a_seed_that_the_command_line_names_must_exist(made: list[str]) -> None:
    with pytest.raises(WorkspaceProblem, match=r"there is no seed tpyo \(there are: seed\); make it with"):
        await seed_to_train_from(session(seed_name="tpyo"), chosen("tpyo"), Silent())  # type: ignore[arg-type]
    assert made == []


async def test_trn_5_a_seed_that_exists_is_taken(made: list[str]) -> None:
    for options, settings in (
        (chosen("seed"), {"seed_name": "seed"}),
        (chosen(), {"seed_name": "seed"}),
        (chosen(), {}),
    ):
        assert await seed_to_train_from(session(**settings), options, Silent()) == "seed"  # type: ignore[arg-type]
    assert made == []


async def test_trn_5_a_workspace_that_is_missing_is_named_with_the_command_that_makes_it() -> None:
    with pytest.raises(WorkspaceProblem, match=r"no workspace nope \(there are: lab\); `videotree baseline` makes it"):
        await existing_workspace(session(workspace="nope"))
    assert (await existing_workspace(session(workspace="lab"))).name == "lab"
