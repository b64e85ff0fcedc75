"""Errors of an import.

TrainerError
├── FaultyImport      records are faulty, so that nothing was imported; all of them are listed
├── OtherContent      the library holds something else under the same names, so that nothing was imported
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
            f"{_remedy(self.faults)}mend the file, or import the rest with --skip-bad"
        )


def _remedy(faults: Sequence[Fault]) -> str:
    """What mends a fault of a whole set without touching the file."""
    reasons = {fault.reason for fault in faults}
    hints = {
        "video_id is missing": "a set without videos is imported with --text-only",
        "task_type is missing": "--task-type gives a type to questions that name none",
    }
    return "".join(f"{hint}; " for reason, hint in hints.items() if reason in reasons)


class OtherContent(TrainerError):
    """Nothing was imported, because the library holds something else under `names`; a person may replace it."""

    def __init__(self, what: str, names: Sequence[str]) -> None:
        self.names = tuple(names)
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        super().__init__(
            f"nothing was imported: the library holds {what} {', '.join(names[:5])}{more} with other content; "
            "replace it with --force"
        )


class UnreadableSource(TrainerError):
    """A file or folder that can't be read; the text says which and what to do."""
