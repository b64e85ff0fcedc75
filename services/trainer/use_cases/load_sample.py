"""Puts the bundled sample into the library, once (TRN-1)."""

from __future__ import annotations

from collections.abc import Sequence

from services.questions import Question
from services.trainer.use_cases.import_ports import LibraryWriter, Trees
from services.trainer.use_cases.import_trees import import_trees

SAMPLE = "sample"


async def import_sample(library: LibraryWriter, questions: Sequence[Question], trees: Trees) -> None:
    """Writes the sample's trees, pictures and questions. Repeating it changes nothing."""
    await import_trees(library, trees)
    await library.import_questions(SAMPLE, questions, force=False)
