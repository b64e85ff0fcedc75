"""Where a training stands and what it was made under, as the store keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from services.trainer.domain.errors import WorkspaceProblem
from services.trainer.domain.trainer_state import SCHEMA_VERSION, TrainerState, state_from_json


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
    schema_version: int = SCHEMA_VERSION

    @property
    def state(self) -> TrainerState:
        """The trainer's state. Raises WorkspaceProblem when another version of the program wrote it in another form."""
        if self.schema_version != SCHEMA_VERSION:
            raise WorkspaceProblem(
                f"the checkpoint of run {self.run_id} has schema version {self.schema_version}, and this program reads "
                f"{SCHEMA_VERSION}; go on with the version of videotree that began the run"
            )
        return state_from_json(self.trainer_state_json)
