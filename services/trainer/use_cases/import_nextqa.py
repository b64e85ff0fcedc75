"""`videotree import nextqa`: questions with the trees that their captions make (TRN-1)."""

import asyncio
from collections.abc import Sequence

from services.questions import Fault, Question
from services.trainer.domain.importing.captions_tree import CaptionFault, captions_tree, parse_captions
from services.trainer.domain.importing.errors import UnreadableSource
from services.trainer.domain.importing.gathering import Reading
from services.trainer.domain.importing.nextqa import parse_nextqa_csv
from services.trainer.domain.importing.subset import drawn_videos
from services.trainer.use_cases.import_ports import (
    Advance,
    Captions,
    Imported,
    LibraryWriter,
    Summariser,
    no_progress,
)
from services.trainer.use_cases.import_questions import refuse_faults
from services.trainer.use_cases.summarise_tree import summarise_tree
from services.video_tree import render_tree

_VIDEOS_AT_ONCE = 8


async def import_nextqa(
    library: LibraryWriter,
    questions_csv: bytes,
    captions: Captions,
    dataset: str,
    *,
    summariser: Summariser | None = None,
    videos: int | None = None,
    draw_seed: int = 0,
    skip_bad: bool = False,
    force: bool = False,
    advance: Advance = no_progress,
) -> Imported:
    """Imports the questions and a tree for each video that one of them names; of `videos` drawn ones where given.

    Everything is read and checked first; trees are written before the questions, so that no question ever names a
    video that isn't there. Summaries are extractive unless a summariser is given. Raises FaultyImport with all faults
    unless `skip_bad`.
    """
    sound_captions, caption_faults = _read_captions(captions)
    parsed = parse_nextqa_csv(questions_csv, Reading(known_videos=frozenset(sound_captions)))
    faults = (*caption_faults, *parsed.faults)
    refuse_faults(faults, skip_bad=skip_bad)
    if not parsed.questions:
        raise UnreadableSource("there is no question to import")
    questions = parsed.questions if videos is None else drawn_videos(parsed.questions, videos, draw_seed)
    video_ids = _videos_of(questions)
    writer = _TreeWriter(library, summariser, force=force)
    await writer.write({video_id: sound_captions[video_id] for video_id in video_ids}, advance)
    await library.import_questions(dataset, questions, force=force)
    return Imported(len(questions), len(video_ids), faults)


def _videos_of(questions: Sequence[Question]) -> Sequence[str]:
    return list(dict.fromkeys(question.video_id for question in questions))


def _read_captions(captions: Captions) -> tuple[dict[str, dict[int, str]], list[Fault]]:
    sound: dict[str, dict[int, str]] = {}
    faults: list[Fault] = []
    for video_id in sorted(captions.video_ids()):
        try:
            sound[video_id] = parse_captions(captions.read(video_id))
        except (CaptionFault, UnreadableSource) as error:
            faults.append(Fault(f"captions of {video_id}", str(error)))
    return sound, faults


class _TreeWriter:
    """Builds and writes the trees of many videos, a few at a time."""

    def __init__(self, library: LibraryWriter, summariser: Summariser | None, *, force: bool) -> None:
        self._library = library
        self._summariser = summariser
        self._force = force

    async def write(self, captions: dict[str, dict[int, str]], advance: Advance) -> None:
        """Writes a tree for each video; the first failure ends the others."""
        slots = asyncio.Semaphore(_VIDEOS_AT_ONCE)
        done = 0

        async def write_one(video_id: str, of_video: dict[int, str]) -> None:
            nonlocal done
            async with slots:
                await self._write(video_id, of_video)
            done += 1
            advance(done, len(captions))

        try:
            async with asyncio.TaskGroup() as group:
                for video_id, of_video in captions.items():
                    group.create_task(write_one(video_id, of_video))
        except* Exception as failures:
            raise failures.exceptions[0] from None

    async def _write(self, video_id: str, captions: dict[int, str]) -> None:
        tree = await asyncio.to_thread(captions_tree, video_id, captions)
        if self._summariser is not None:
            tree = await summarise_tree(tree, self._summariser)
        await self._library.put_video(video_id, render_tree(tree), force=self._force)
