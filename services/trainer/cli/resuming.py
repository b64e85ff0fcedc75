"""Taking up a broken-off training: with which settings, and by which command."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from services.trainer.cli.session import load_config
from services.trainer.cli.starting import TrainOptions
from services.trainer.config import TrainerConfig
from services.trainer.domain.runs import Run

_FLAGS = {
    "epochs": "--epochs",
    "batch_size": "--batch-size",
    "max_steps_per_epoch": "--steps",
    "seed": "--random-seed",
}
"""The flags of `train` that decide what a run does; the others say what to start from or how much to spend."""


def with_saved_settings(config: TrainerConfig, saved: Run) -> TrainerConfig:
    """The settings of a run taken up again: what nobody sets now is as it was when the run began.

    What is set now, by flag, variable or file, stays, so that a changed setting is noticed and refused.
    """
    snapshot = orjson.loads(saved.config_json or b"{}")
    forgotten = {name: value for name, value in snapshot.items() if config.source_of(name) == "default"}
    return config.model_copy(update=forgotten)


def resume_hint(run_id: str, chosen: TrainOptions, flags: Mapping[str, object]) -> str:
    """The command that goes on with a run.

    `flags` are the settings that the command line gave. Those which a file or variable sets otherwise stand in the
    command, since without them a resumed run would be refused; the others are remembered with the run.
    """
    elsewhere = load_config()
    needed = [
        f" {flag} {flags[name]}"
        for name, flag in _FLAGS.items()
        if name in flags and elsewhere.source_of(name) != "default"
    ]
    words = [" --demo"] * chosen.demo + [" --simulated"] * chosen.simulated
    words += [f" --world {chosen.world}"] if chosen.world else []
    words += [f" --data {chosen.data}"] if chosen.data else []
    return f"go on with: videotree train --resume {run_id}{''.join(needed)}{''.join(words)}"
