"""The run ids that belong to one training step (STO-7)."""

from __future__ import annotations

GATE_MARK = "_gate_"


def rollout_run_id(base: str, epoch: int, step: int) -> str:
    """Return the run id of a step's rollout, `{base}_e{E}_s{S}`."""
    return f"{base}_e{epoch}_s{step}"


def gate_run_prefix(base: str, epoch: int, step: int) -> str:
    """Return the literal prefix of all gate runs of a step."""
    return f"{rollout_run_id(base, epoch, step)}{GATE_MARK}"


def is_gate_run(run_id: str) -> bool:
    """Return whether a run id belongs to a gate arm, and so must not leak into rollouts or baselines (STO-12)."""
    return GATE_MARK in run_id
