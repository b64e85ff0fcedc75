"""`videotree import questions`: a whole question set, or nothing (TRN-1)."""

from collections.abc import Callable, Collection

from services.questions import Fault, ParsedQuestions
from services.trainer.domain.importing.errors import UnreadableSource
from services.trainer.domain.importing.gathering import Reading
from services.trainer.domain.importing.subset import drawn_videos
from services.trainer.use_cases.import_checks import refuse_faults, refuse_other_questions
from services.trainer.use_cases.import_ports import Imported, LibraryWriter


async def import_questions(
    library: LibraryWriter,
    read: Callable[[Reading], ParsedQuestions],
    dataset: str,
    *,
    task_type: str = "",
    text_only: bool = False,
    durations: Collection[str] = (),
    videos: int | None = None,
    draw_seed: int = 0,
    skip_bad: bool = False,
    force: bool = False,
) -> Imported:
    """Imports what `read` finds under the name `dataset`.

    `task_type` is that of questions which name none; `text_only` says that the questions need no video; `durations`
    keeps only Video-MME's videos of these categories; `videos` keeps the questions of so many drawn ones. Raises
    FaultyImport with all faults unless `skip_bad`, OtherContent when the library holds other questions under this
    name without `force`, and UnreadableSource where nothing is left to import.
    """
    known_videos = None if text_only else frozenset(await library.video_ids())
    reading = Reading(known_videos, task_type=task_type, text_only=text_only, durations=tuple(durations))
    parsed = read(reading)
    refuse_faults(parsed.faults, skip_bad=skip_bad)
    if not parsed.questions:
        raise UnreadableSource("there is no question to import" + _why(parsed.faults, durations))
    questions = parsed.questions if videos is None else drawn_videos(parsed.questions, videos, draw_seed)
    await refuse_other_questions(library, dataset, questions, force=force)
    await library.import_questions(dataset, questions, force=force)
    named_videos = {question.video_id for question in questions if question.video_id}
    return Imported(len(questions), len(named_videos), parsed.faults)


def _why(faults: tuple[Fault, ...], durations: Collection[str]) -> str:
    if faults:
        return f"; the first of {len(faults)} faults: {faults[0]}"
    return f": none is about a video of the duration {' or '.join(durations)}" if durations else ": the file is empty"
