"""`videotree import nextqa`: questions with the trees that their captions make (TRN-1)."""

from services.trainer.domain.importing.errors import UnreadableSource
from services.trainer.domain.importing.gathering import Reading
from services.trainer.domain.importing.nextqa import parse_nextqa_csv
from services.trainer.domain.importing.subset import drawn_videos
from services.trainer.use_cases.import_captions import make_trees, read_captions, write_trees
from services.trainer.use_cases.import_checks import refuse_faults, refuse_other_questions
from services.trainer.use_cases.import_ports import (
    Advance,
    Captions,
    Imported,
    LibraryWriter,
    Summariser,
    no_progress,
)


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

    Everything is read, made and checked first; trees are written before the questions, so that no question ever names
    a video that isn't there. Summaries are extractive unless a summariser is given. Raises FaultyImport with all
    faults unless `skip_bad`, and OtherContent when the library holds something else under a name without `force`.
    """
    sound_captions, caption_faults = read_captions(captions)
    reading = Reading(known_videos=frozenset(sound_captions), unknown_video_remedy="there are no sound captions of it")
    parsed = parse_nextqa_csv(questions_csv, reading)
    faults = (*caption_faults, *parsed.faults)
    refuse_faults(faults, skip_bad=skip_bad)
    if not parsed.questions:
        raise UnreadableSource("there is no question to import")
    questions = parsed.questions if videos is None else drawn_videos(parsed.questions, videos, draw_seed)
    await refuse_other_questions(library, dataset, questions, force=force)
    video_ids = list(dict.fromkeys(question.video_id for question in questions))
    trees = await make_trees({video_id: sound_captions[video_id] for video_id in video_ids}, summariser, advance)
    await write_trees(library, trees, force=force)
    await library.import_questions(dataset, questions, force=force)
    return Imported(len(questions), len(video_ids), faults)
