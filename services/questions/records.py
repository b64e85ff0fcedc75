"""Checking question records of any origin and naming every fault by its place (TRN-1)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from services.questions.question import OPTION_LETTERS, Question

_MAX_ID_CHARS = 200


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """A record with the words that lead a person to it, such as `line 12`."""

    place: str
    record: object


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with one record."""

    place: str
    reason: str
    question_id: str = ""

    def __str__(self) -> str:
        subject = f"question {self.question_id!r}: " if self.question_id else ""
        return f"{self.place}: {subject}{self.reason}"


@dataclass(frozen=True, slots=True)
class ParsedQuestions:
    """The sound questions in file order, and every fault; a record with a fault gives no question."""

    questions: tuple[Question, ...]
    faults: tuple[Fault, ...]


@dataclass(slots=True)
class _Reader:
    """Reads the fields of one record and gathers what is wrong with them."""

    record: Mapping[str, object]
    reasons: list[str] = field(default_factory=list)

    def text(self, name: str, *, default: str | None = None) -> str:
        value = self.record.get(name, default)
        if value is None:
            self.reasons.append(f"{name} is missing")
        elif not isinstance(value, str):
            self.reasons.append(f"{name} must be text, not {type(value).__name__}")
        elif not value.strip() and default is None:
            self.reasons.append(f"{name} is empty")
        elif not _is_storable(value):
            self.reasons.append(f"{name} holds a character that cannot be stored (NUL or half a surrogate pair)")
        else:
            return value.strip()
        return ""

    def identifier(self, name: str, *, default: str | None = None) -> str:
        value = self.text(name, default=default)
        if len(value) > _MAX_ID_CHARS or not value.isprintable():
            self.reasons.append(f"{name} must be one line of at most {_MAX_ID_CHARS} printable characters")
        return value

    def video_id(self) -> str:
        value = self.identifier("video_id", default="")
        if "/" in value or "\\" in value or value.startswith("."):
            self.reasons.append(f"video_id {value!r} cannot be a folder name")
        return value

    def options(self) -> tuple[str, ...]:
        value = self.record.get("options")
        if not isinstance(value, list | tuple):
            self.reasons.append("options must be a list of texts")
            return ()
        if not 2 <= len(value) <= len(OPTION_LETTERS):
            self.reasons.append(f"{len(value)} options; there must be 2 to {len(OPTION_LETTERS)}")
        for letter, option in zip(OPTION_LETTERS, value, strict=False):
            if not isinstance(option, str) or not option.strip() or not _is_storable(option):
                self.reasons.append(f"option {letter} is empty or not text")
        return tuple(option.strip() for option in value if isinstance(option, str))

    def answer(self, option_count: int) -> str:
        letter = self.text("answer").upper()
        letters = OPTION_LETTERS[:option_count]
        if letter and option_count and (len(letter) != 1 or letter not in letters):
            self.reasons.append(f"answer {letter!r} is no option; the options are {', '.join(letters)}")
        return letter


def _is_storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def question_from_record(record: object) -> tuple[Question | None, tuple[str, ...]]:
    """The question a record describes, or None and every reason why it describes none.

    Fields: `question_id`, `video_id` (absent or empty: no video), `task_type`, `question`, `options`, `answer`
    (a letter) and `unit_id` (default: the question id).
    """
    if not isinstance(record, Mapping):
        return None, (f"a question must be a JSON object, not {type(record).__name__}",)
    reader = _Reader(record)
    question_id = reader.identifier("question_id")
    video_id = reader.video_id()
    task_type = reader.identifier("task_type")
    text = reader.text("question")
    options = reader.options()
    answer = reader.answer(len(options))
    unit_id = reader.identifier("unit_id", default=question_id) or question_id
    if reader.reasons:
        return None, tuple(reader.reasons)
    return Question(question_id, video_id, task_type, text, options, answer, unit_id), ()


def question_to_record(question: Question) -> dict[str, object]:
    """The record `question_from_record` reads back to an equal question."""
    return {
        "question_id": question.question_id,
        "video_id": question.video_id,
        "task_type": question.task_type,
        "question": question.text,
        "options": list(question.options),
        "answer": question.answer,
        "unit_id": question.unit_id,
    }


def check_records(
    records: Iterable[PlacedRecord],
    known_videos: Collection[str] | None = None,
    unknown_video_remedy: str = "import its tree first",
) -> ParsedQuestions:
    """All sound questions and all faults, those between records too.

    Between records: a repeated question id (the second one is at fault), a unit whose questions differ in task
    type or in video, and, when `known_videos` is given, a video that is not among them (with the remedy).
    """
    questions: dict[str, Question] = {}
    places: dict[str, str] = {}
    first_of_unit: dict[str, Question] = {}
    faults: list[Fault] = []
    for placed in records:
        question, reasons = question_from_record(placed.record)
        if question is None:
            faults.extend(Fault(placed.place, reason, _named_id(placed.record)) for reason in reasons)
            continue
        conflict = _conflict(question, places, first_of_unit.get(question.unit_id, question))
        if not conflict and known_videos is not None and question.video_id and question.video_id not in known_videos:
            conflict = f"unknown video {question.video_id!r}; {unknown_video_remedy}"
        if conflict:
            faults.append(Fault(placed.place, conflict, question.question_id))
            continue
        questions[question.question_id] = question
        places[question.question_id] = placed.place
        first_of_unit.setdefault(question.unit_id, question)
    return ParsedQuestions(tuple(questions.values()), tuple(faults))


def _named_id(record: object) -> str:
    value = record.get("question_id") if isinstance(record, Mapping) else None
    return value if isinstance(value, str) and _is_storable(value) else ""


def _conflict(question: Question, places: Mapping[str, str], first_of_unit: Question) -> str:
    if question.question_id in places:
        return f"this question id already stands at {places[question.question_id]}"
    if question.task_type != first_of_unit.task_type:
        return f"unit {question.unit_id!r} holds questions of the task type {first_of_unit.task_type!r}"
    if question.video_id != first_of_unit.video_id:
        return f"unit {question.unit_id!r} holds questions about the video {first_of_unit.video_id!r}"
    return ""
