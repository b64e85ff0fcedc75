"""The question file: one JSON object a line, UTF-8."""

import json
from collections.abc import Collection, Iterable, Iterator

from services.questions.question import Question
from services.questions.records import Fault, ParsedQuestions, PlacedRecord, check_records, question_to_record

_BYTE_ORDER_MARK = "\ufeff"


def parse_question_lines(content: bytes, known_videos: Collection[str] | None = None) -> ParsedQuestions:
    """The questions of a JSONL file and every fault with its line number. Blank lines are skipped.

    Lines end at LF (with or without CR) only, so that U+2028 inside a text stays inside it.
    """
    faults: list[Fault] = []
    checked = check_records(_records(content, faults), known_videos)
    everything = sorted([*faults, *checked.faults], key=lambda fault: int(fault.place.removeprefix("line ")))
    return ParsedQuestions(checked.questions, tuple(everything))


def read_json_lines(content: bytes) -> tuple[list[PlacedRecord], list[Fault]]:
    """Each line's JSON value with its place, and a fault for each line that holds none."""
    faults: list[Fault] = []
    return list(_records(content, faults)), faults


def _records(content: bytes, faults: list[Fault]) -> Iterator[PlacedRecord]:
    for number, line in enumerate(content.split(b"\n"), start=1):
        place = f"line {number}"
        try:
            text = line.decode("utf-8").removeprefix(_BYTE_ORDER_MARK if number == 1 else "")
            if text.strip():
                yield PlacedRecord(place, json.loads(text))
        except UnicodeDecodeError as error:
            faults.append(Fault(place, f"not UTF-8: {error.reason} at byte {error.start + 1}"))
        except RecursionError:
            faults.append(Fault(place, "not valid JSON: nested too deeply"))
        except json.JSONDecodeError as error:
            faults.append(Fault(place, f"not valid JSON: {error.msg} at column {error.colno}"))
        except ValueError as error:
            faults.append(Fault(place, f"not valid JSON: {error}"))


def render_question_lines(questions: Iterable[Question]) -> bytes:
    """The JSONL file of these questions; parsing it gives equal questions."""
    return "".join(
        json.dumps(question_to_record(question), ensure_ascii=False) + "\n" for question in questions
    ).encode("utf-8")
