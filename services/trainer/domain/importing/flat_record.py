"""One question in any of the flat spellings that are about, as the record that the questions kernel checks."""

from collections.abc import Collection, Mapping
from typing import Any

from services.questions import OPTION_LETTERS
from services.trainer.domain.importing.options import answer_letter, without_letters

_QUESTION_ID = ("question_id", "id", "qid")
_VIDEO_ID = ("video_id", "video", "videoID", "video_name")
_TASK_TYPE = ("task_type", "type", "question_type")
_TEXT = ("question", "text")
_OPTIONS = ("options", "choices", "candidates")
_ANSWER = ("answer", "answer_letter", "correct_answer", "label")


def question_record(
    given: Mapping[str, Any],
    *,
    video_id: str = "",
    task_type: str = "",
    known_videos: Collection[str] | None = None,
) -> dict[str, object]:
    """The record with the kernel's field names, options without letters and the answer as a letter.

    `video_id` and `task_type` stand in where the question names none. Where it names two videos (Video-MME's number
    and its YouTube id) the one that is known wins, else the first. What can't be read is passed on as it is, so that
    the kernel names the fault. Raises UnclearAnswer for an answer that names no single option.
    """
    options = _texts(_first(given, _OPTIONS))
    record: dict[str, object] = {
        "question_id": _id(_first(given, _QUESTION_ID)),
        "video_id": _video(given, known_videos) or video_id,
        "task_type": _first(given, _TASK_TYPE) or task_type or None,
        "question": _first(given, _TEXT),
        "options": without_letters(options) if _all_text(options) else options,
        "answer": _first(given, _ANSWER),
    }
    record["answer"] = _answer(record["answer"], record["options"])
    if given.get("unit_id"):
        record["unit_id"] = given["unit_id"]
    return record


def _first(given: Mapping[str, Any], names: Collection[str]) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _id(value: object) -> object:
    """Ids are often numbers."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _video(given: Mapping[str, Any], known_videos: Collection[str] | None) -> object:
    named = [_id(given[name]) for name in _VIDEO_ID if given.get(name) not in (None, "")]
    known = [name for name in named if known_videos is not None and name in known_videos]
    return next(iter([*known, *named]), "")


def _texts(value: Any) -> Any:
    """A list of options; an object `{"A": "..."}` whose letters are in order counts as one."""
    if isinstance(value, Mapping) and list(value) == list(OPTION_LETTERS[: len(value)]):
        return list(value.values())
    return value


def _all_text(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _answer(answer: object, options: Any) -> object:
    if not isinstance(answer, str) or not _all_text(options) or len(options) > len(OPTION_LETTERS):
        return answer
    return answer_letter(answer, options)
