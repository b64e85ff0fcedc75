"""Whole trainings in the world of tests/fakes/trainer_world.py."""

from typing import Any

from services.trainer.config import TrainerConfig
from services.trainer.use_cases.open_run import gather_run, resume_run, start_run
from services.trainer.use_cases.train import TrainingEnd, train
from tests.fakes.trainer_services import services_of
from tests.fakes.trainer_world import Silent, World

SMALL: dict[str, Any] = {"epochs": 2, "batch_size": 12, "max_steps_per_epoch": 2, "gate_cooldown": 1}


async def no_limit() -> None:
    """There is always room."""


async def train_in(world: World, run_id: str = "run-1", *, resume: bool = False, **settings: Any) -> TrainingEnd:
    config = TrainerConfig(**{**SMALL, **settings})
    run = await gather_run(services_of(world), Silent(), config.training_settings(), "lab", run_id)
    checkpoint = await (resume_run(run, "") if resume else start_run(run, ""))
    return await train(run, checkpoint, no_limit)
