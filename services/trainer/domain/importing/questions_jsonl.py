"""Plain JSONL: one question a line."""

from services.questions import ParsedQuestions, read_json_lines
from services.trainer.domain.importing.gathering import Gathering, Reading


def parse_questions_jsonl(content: bytes, reading: Reading) -> ParsedQuestions:
    """The questions of a JSONL file; places are lines."""
    gathering = Gathering(reading)
    lines, faults = read_json_lines(content)
    for placed in lines:
        if not isinstance(placed.record, dict) or reading.wants(placed.record):
            gathering.add(placed.place, placed.record)
    for fault in faults:
        gathering.fault(fault.place, fault.reason)
    parsed = gathering.parsed()
    in_order = sorted(parsed.faults, key=lambda fault: int(fault.place.removeprefix("line ")))
    return ParsedQuestions(parsed.questions, tuple(in_order))
