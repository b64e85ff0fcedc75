"""Where a training stands and what it was made under, as the store keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """What a resumed run must share with its checkpoint."""

    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a training stands: the next piece of work, and the trainer's state as a JSON object."""

    run_id: str
    epoch: int
    step: int
    global_step: int
    trainer_state_json: str
    fingerprints: Fingerprints
    schema_version: int = 1
