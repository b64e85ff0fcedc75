"""Names of the runs and salts of one training run.

Every id begins with the training run's own id, so that two runs of one workspace never share a row and
another run id draws afresh. Epochs and steps count from 0.
"""

from __future__ import annotations

import re

from services.skills import slug

RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
"""A training run's id. No underscore: it separates the parts of the derived ids."""


def is_run_id(text: str) -> bool:
    """Whether `text` can name a training run."""
    return RUN_ID.fullmatch(text) is not None


def rollout_run(run_id: str, epoch: int, step: int) -> str:
    """The run that holds the rollout of one step: `{run}_e{E}_s{S}`."""
    return f"{run_id}_e{epoch}_s{step}"


def gate_prefix(run_id: str, epoch: int, step: int, task_type: str) -> str:
    """The prefix of a gate's two arms: `{run}_e{E}_s{S}_gate_{slug}` (GAT-5)."""
    return f"{rollout_run(run_id, epoch, step)}_gate_{slug(task_type)}"


def evaluation_run(run_id: str, epoch: int, pool: str, label: str) -> str:
    """The run that holds one evaluation: `{run}_e{E}_{pool}_{label}`, such as `demo_e0_val_initial`."""
    return f"{run_id}_e{epoch}_{pool}_{label}"


def probation_run(run_id: str, epoch: int, task_type: str) -> str:
    """The run that holds the predecessor's answers for a probation: `{run}_e{E}_val_probation_{slug}`; its own salt."""
    return evaluation_run(run_id, epoch, "val", f"probation_{slug(task_type)}")


def epoch_salt(run_id: str, epoch: int) -> str:
    """The cache salt of rollout, val and test calls: epochs draw fresh samples, a resumed epoch replays (INF-6)."""
    return f"{run_id}:e{epoch}"
