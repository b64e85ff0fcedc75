"""Errors of an import.

TrainerError
├── FaultyImport      records are faulty, so that nothing was imported; all of them are listed
└── UnreadableSource  the file or folder cannot be read at all
"""

from collections.abc import Sequence

from services.questions import Fault
from services.trainer.domain.errors import TrainerError


class FaultyImport(TrainerError):
    """Nothing was imported, because of `faults`, each with its place; a person may ask to leave them out."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(
            f"nothing was imported: {len(self.faults)} fault(s), the first: {self.faults[0]}; "
            "mend the file, or import the rest with --skip-bad"
        )


class UnreadableSource(TrainerError):
    """A file or folder that can't be read; the text says which and what to do."""
