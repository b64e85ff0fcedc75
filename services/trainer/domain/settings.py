"""The settings that decide what a training does. Plain values, checked where they are read (`config.py`)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from services.trainer.domain.edit_budget import BudgetSchedule
from services.trainer.domain.gate_round import VerdictParameters

_WITHOUT_EFFECT = frozenset({"concurrency"})


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """See the fields of the same names in `config.py` for meanings and ranges."""

    solver: str
    skill_mode: str
    max_steps: int
    concurrency: int
    seed: int
    targets: tuple[str, ...]
    prompt_every: int
    epochs: int
    batch_size: int
    max_steps_per_epoch: int | None
    eval_min_per_class: int
    trainable_min_units: int
    gate_n_max: int
    gate_cooldown: int
    early_stop_patience: int
    holdout_test: bool
    soft_score: bool
    mixed_hard_weight: float
    slow_update: bool
    skill_update_mode: str
    edit_budget_start: int
    edit_budget_end: int
    edit_budget_schedule: BudgetSchedule
    rejected_edits_kept: int
    e_confirm: float
    e_provisional: float
    w_net_min: int
    delta_min: float
    lambda_dir: float
    p1: float
    mixture: str
    gate_guard_err: float
    max_speculation: int | None
    cancel_in_flight: bool
    e_rollback: float
    probation_units: int

    @property
    def verdict_parameters(self) -> VerdictParameters:
        """The gate's parameters (GAT-2)."""
        return VerdictParameters(
            self.e_confirm,
            self.e_provisional,
            self.w_net_min,
            self.delta_min,
            self.lambda_dir,
            self.p1,
            self.mixture,
        )

    def deciding(self) -> dict[str, Any]:
        """The settings that a resumed run must share: all but those that only say how fast it goes."""
        return {name: value for name, value in asdict(self).items() if name not in _WITHOUT_EFFECT}
