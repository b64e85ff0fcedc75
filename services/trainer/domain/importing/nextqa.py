"""NExT-QA's CSV: five options, the answer as an index, ids unique only together with the video."""

import csv
import io
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from services.questions import OPTION_LETTERS, ParsedQuestions
from services.trainer.domain.importing.gathering import Gathering, Reading

TASK_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CW": "Causal Why",
        "CH": "Causal How",
        "TN": "Temporal Next",
        "TC": "Temporal Current",
        "TP": "Temporal Previous",
        "DL": "Descriptive Location",
        "DC": "Descriptive Count",
        "DO": "Descriptive Other",
    }
)
_OPTION_COLUMNS = ("a0", "a1", "a2", "a3", "a4")
_INDEX = re.compile("[0-9]{1,9}")
_COLUMNS = ("video", "question", "answer", "qid", "type", *_OPTION_COLUMNS)


def parse_nextqa_csv(content: bytes, reading: Reading) -> ParsedQuestions:
    """The questions of the CSV; places are lines. The question id is `<video>-<qid>`."""
    gathering = Gathering(reading)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        gathering.fault(f"line {line}", f"not UTF-8: {error.reason} at byte {error.start + 1} of the file")
        return gathering.parsed()
    _gather_rows(gathering, csv.DictReader(io.StringIO(text, newline=""), strict=True))
    return gathering.parsed()


def _gather_rows(gathering: Gathering, rows: "csv.DictReader[str]") -> None:
    line_before = 0
    try:
        missing = [column for column in _COLUMNS if column not in (rows.fieldnames or ())]
        if missing:
            gathering.fault("line 1", f"columns are missing: {', '.join(missing)}")
            return
        line_before = rows.line_num
        for row in rows:
            _gather_row(gathering, f"line {line_before + 1}", row)
            line_before = rows.line_num
    except csv.Error as error:
        gathering.fault(f"line {line_before + 1}", f"not valid CSV: {error}")


def _gather_row(gathering: Gathering, place: str, row: Mapping[str, str | None]) -> None:
    video, qid = (row["video"] or "").strip(), (row["qid"] or "").strip()
    question_id = f"{video}-{qid}" if video and qid else None
    if row["type"] not in TASK_TYPES:
        gathering.fault(place, f"unknown type {row['type']!r}; known: {', '.join(TASK_TYPES)}", question_id or "")
        return
    answer = (row["answer"] or "").strip()
    record = {
        "question_id": question_id,
        "video_id": video,
        "task_type": TASK_TYPES[row["type"] or ""],
        "question": row["question"],
        "options": [row[column] or "" for column in _OPTION_COLUMNS],
    }
    if not _INDEX.fullmatch(answer) or int(answer) >= len(_OPTION_COLUMNS):
        gathering.fault(place, f"answer {answer[:40]!r} is no option; it must be 0 to 4", question_id or "")
        return
    gathering.add(place, record | {"answer": OPTION_LETTERS[int(answer)]})
