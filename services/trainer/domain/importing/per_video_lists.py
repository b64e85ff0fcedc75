"""A folder of `<video_id>.json`, each a list of questions about that video."""

from collections.abc import Mapping

from services.questions import ParsedQuestions
from services.trainer.domain.importing.gathering import Gathering, Reading
from services.trainer.domain.importing.located_json import LocatedObject, UnreadableFile, read_located_json


def parse_per_video_lists(files: Mapping[str, bytes], reading: Reading) -> ParsedQuestions:
    """The questions of all files (name without `.json` -> content), in order of name; places are file and line.

    A file may also hold an object with the list under `questions`. What a question says of its video must agree with
    the file's name.
    """
    gathering = Gathering(reading)
    for video_id in sorted(files):
        _gather_file(gathering, video_id, files[video_id])
    return gathering.parsed()


def _gather_file(gathering: Gathering, video_id: str, content: bytes) -> None:
    name = f"{video_id}.json"
    try:
        found = read_located_json(content)
    except UnreadableFile as error:
        gathering.fault(name, str(error))
        return
    questions = found.get("questions") if isinstance(found, LocatedObject) else found
    if not isinstance(questions, list):
        gathering.fault(name, "the file holds no list of questions")
        return
    for number, question in enumerate(questions, start=1):
        place = f"{name} line {question.line}" if isinstance(question, LocatedObject) else f"{name} item {number}"
        if isinstance(question, LocatedObject) and str(question.get("video_id") or video_id) != video_id:
            gathering.fault(place, f"the question names the video {question['video_id']!r}")
        else:
            gathering.add(place, question, video_id=video_id)
