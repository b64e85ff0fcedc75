"""Puts the bundled sample into the library, once (TRN-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.questions import Question
from services.trainer.use_cases.import_ports import LibraryWriter

SAMPLE = "sample"


async def import_sample(library: LibraryWriter, questions: Sequence[Question], trees: Mapping[str, bytes]) -> None:
    """Writes the sample's trees and questions. Repeating it changes nothing."""
    for video_id in sorted(trees):
        await library.put_video(video_id, trees[video_id], force=False)
    await library.import_questions(SAMPLE, questions, force=False)
