"""The `[trainer]` section: where the services are, and how a run is trained. Read once, refused early."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from services.runtime.config import ConfigError, Section
from services.runtime.config_sources import config_path, read_tables
from services.trainer.domain.budget import BudgetLimits
from services.trainer.domain.prompt_targets import TARGETS
from services.trainer.domain.settings import TrainingSettings
from services.trainer.domain.split import SplitParameters

DEFAULT_DATA_ROOT = Path("data")
DEFAULT_TEST_SHARE = 5
"""One question in so many is held out where `test_size` is absent."""


class TrainerConfig(Section):
    """How the trainer reaches the services and how it trains. Sizes of batches, pools and ladders are in units."""

    store_address: str = Field("127.0.0.1:50051", validation_alias="VIDEOTREE_STORE_ADDRESS")
    inference_address: str = Field("127.0.0.1:50052", validation_alias="VIDEOTREE_INFERENCE_ADDRESS")
    gate_address: str = Field("127.0.0.1:50053", validation_alias="VIDEOTREE_GATE_ADDRESS")
    evolver_address: str = Field("127.0.0.1:50054", validation_alias="VIDEOTREE_EVOLVER_ADDRESS")

    workspace: str = Field("main", description="Workspace that commands work on")
    dataset: str = Field("", description="Question set; may stay empty while the library holds only one")
    seed_name: str = Field("", description="Seed from which `train` makes its workspace")
    skills_dir: Path | None = Field(None, description="Folder of the v1 skills of a new workspace")
    prompts_dir: Path | None = Field(None, description="Folder with agent/ and tools/ prompts of a new workspace")
    call_timeout_seconds: float = Field(60.0, gt=0, description="Deadline of one short call to a service")

    solver: Literal["tree", "direct"] = "tree"
    skill_mode: Literal["auto", "manual", "none"] = "auto"
    max_steps: int = Field(20, ge=1, le=200, description="Successful tool calls an agent may make")
    concurrency: int = Field(32, ge=1, le=4096, description="Questions in flight at once")

    seed: int = Field(0, ge=0, description="Seed of the test draw and of the batch order")
    test_size: int | None = Field(None, ge=0, description="Questions held out for the test; absent takes a fifth")
    val_ratio: float = Field(0.4, gt=0, lt=1, description="Val's share of the questions outside test")
    val_wrong_min: int = Field(20, ge=0, description="Wrong baseline answers that val must hold")

    targets: tuple[Literal["skills", "system", "tools"], ...] = Field(
        ("skills",), min_length=1, description="What is evolved: skills, system (the agent's prompt), tools"
    )
    prompt_every: int = Field(2, ge=1, description="A prompt among the targets is tried every so many steps")

    epochs: int = Field(3, ge=1, le=1000)
    batch_size: int = Field(40, ge=1, description="Diag units of one step")
    max_steps_per_epoch: int | None = Field(None, ge=1, description="Cap on the steps of an epoch")
    eval_min_per_class: int = Field(2, ge=1, description="Val units a type needs to be trained")
    trainable_min_units: int = Field(8, ge=1, description="Diag and val units a type needs to be trained")
    gate_n_max: int = Field(60, ge=1, description="Longest ladder")
    gate_cooldown: int = Field(2, ge=0, description="Steps a rejected type sits out")
    early_stop_patience: int = Field(2, ge=0, description="Epochs without a better best; 0 never stops")
    holdout_test: bool = Field(True, description="Evaluate the held-out test at the end of each epoch")
    soft_score: bool = Field(False, description="Let the judge grade the evidence of val answers")
    mixed_hard_weight: float = Field(0.7, ge=0, le=1, description="w in mixed = w hard + (1 - w) soft")
    slow_update: bool = Field(True, description="Rewrite the MOMENTUM block at epoch ends")
    skill_update_mode: Literal["patch", "rewrite"] = "patch"
    edit_budget_start: int = Field(4, ge=1, le=50, description="Edits a proposal may hold at the first step")
    edit_budget_end: int = Field(2, ge=1, le=50, description="Edits a proposal may hold at the last step")
    edit_budget_schedule: Literal["cosine", "linear", "constant"] = "cosine"
    rejected_edits_kept: int = Field(5, ge=0, le=100, description="Refused proposals shown to the next one, per type")

    e_confirm: float = Field(20.0, gt=1)
    e_provisional: float = Field(3.0, gt=0)
    w_net_min: int = Field(2, ge=0)
    delta_min: float = Field(0.02, ge=0, le=1)
    lambda_dir: float = Field(-0.642, lt=0)
    p1: float = Field(0.7, gt=0.5, lt=1)
    mixture: Literal["uniform", "one_sided"] = "uniform"
    gate_guard_err: float = Field(0.10, gt=0, le=1, description="Share of failed questions that aborts a round")
    max_speculation: int | None = Field(None, ge=1, description="Units launched beyond the prefix; absent is unbounded")
    cancel_in_flight: bool = Field(False, description="Cancel a frozen type's arms instead of letting them finish")
    e_rollback: float = Field(10.0, gt=1, description="Evidence that rolls a provisional accept back")
    probation_units: int = Field(30, ge=1, description="Later pairs after which a provisional accept is kept")

    max_calls: int | None = Field(None, ge=1, description="Model calls after which the run stops")
    max_tokens: int | None = Field(None, ge=1, description="Tokens after which the run stops")
    max_minutes: float | None = Field(None, gt=0, description="Minutes after which the run stops")

    @model_validator(mode="after")
    def _bars_are_ordered(self) -> TrainerConfig:
        if self.e_provisional >= self.e_confirm:
            raise ValueError("e_provisional must be below e_confirm")
        return self

    @field_validator("targets")
    @classmethod
    def _targets_in_order(cls, targets: tuple[str, ...]) -> tuple[str, ...]:
        """Each once and in one order, so that two ways to write the same targets are one setting."""
        return tuple(name for name in TARGETS if name in targets)

    @model_validator(mode="after")
    def _solver_reads_the_targets(self) -> TrainerConfig:
        if "tools" in self.targets and self.solver == "direct":
            raise ValueError("targets: the direct solver uses no tools, so their prompts can't be evolved with it")
        return self

    def training_settings(self) -> TrainingSettings:
        """The settings that decide a run's result."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(TrainingSettings)}
        return TrainingSettings(**{**values, "targets": tuple(self.targets)})

    def split_parameters(self, question_count: int) -> SplitParameters:
        """The parameters of the split of `question_count` questions."""
        test_size = question_count // DEFAULT_TEST_SHARE if self.test_size is None else self.test_size
        return SplitParameters(test_size, self.val_ratio, self.val_wrong_min, self.seed)

    def budget_limits(self) -> BudgetLimits:
        """The limits on what one command may spend."""
        return BudgetLimits(self.max_calls, self.max_tokens, self.max_minutes)


def configured_data_root() -> Path:
    """Where an embedded store keeps its data: VIDEOTREE_DATA, else `data` in `[store]` of the file, else `./data`."""
    if from_environment := os.environ.get("VIDEOTREE_DATA"):
        return Path(from_environment)
    path = config_path()
    written = read_tables(path).get("store", {}).get("data", str(DEFAULT_DATA_ROOT))
    if not isinstance(written, str):
        raise ConfigError(f"{path} [store]: data must be a path in quotes (got {written!r})")
    return Path(written)
