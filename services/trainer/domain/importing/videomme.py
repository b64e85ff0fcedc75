"""Video-MME's own forms: nested evaluation JSON, the flat list, the older spelling, and the rows of the parquet."""

from collections.abc import Iterable, Mapping
from typing import Any

from services.questions import ParsedQuestions
from services.trainer.domain.importing.gathering import Gathering, Reading
from services.trainer.domain.importing.located_json import LocatedObject, UnreadableFile, read_located_json


def parse_videomme_json(content: bytes, reading: Reading) -> ParsedQuestions:
    """The questions of an evaluation JSON: a list of videos with nested `questions`, or a flat list of questions.

    Texts recur, so that questions are told apart by id only; the letter decides where option texts recur. A file that
    is no JSON (such as the published template with its trailing commas) gives one fault that says where.
    """
    gathering = Gathering(reading)
    try:
        found = read_located_json(content)
    except UnreadableFile as error:
        gathering.fault("the file", str(error))
        return gathering.parsed()
    if not isinstance(found, list):
        gathering.fault("the file", "it must hold a list of videos or of questions")
        return gathering.parsed()
    for number, entry in enumerate(found, start=1):
        _gather_entry(gathering, number, entry)
    return gathering.parsed()


def parse_videomme_rows(rows: Iterable[Mapping[str, Any]], reading: Reading) -> ParsedQuestions:
    """The questions of the parquet's rows (the flat columns); places are rows, from 1."""
    gathering = Gathering(reading)
    for number, row in enumerate(rows, start=1):
        if reading.wants(row):
            gathering.add(f"row {number}", row)
    return gathering.parsed()


def _gather_entry(gathering: Gathering, number: int, entry: object) -> None:
    place = f"line {entry.line}" if isinstance(entry, LocatedObject) else f"item {number}"
    if not isinstance(entry, LocatedObject):
        gathering.add(place, entry)
    elif not gathering.reading.wants(entry):
        return
    elif "questions" in entry:
        _gather_video(gathering, place, entry)
    else:
        gathering.add(place, entry)


def _gather_video(gathering: Gathering, place: str, video: LocatedObject) -> None:
    questions = video["questions"]
    if not isinstance(questions, list):
        gathering.fault(place, "questions must be a list")
        return
    about_video = {name: video[name] for name in ("video_id", "videoID") if name in video}
    for number, question in enumerate(questions, start=1):
        if isinstance(question, LocatedObject):
            gathering.add(f"line {question.line}", {**about_video, **question})
        else:
            gathering.add(f"{place} question {number}", question)
