"""Questions and units: what is asked, how answers are read, and what counts as one pair (pure)."""

from services.questions.jsonl import parse_question_lines, read_json_lines, render_question_lines
from services.questions.prediction import normalise_prediction, storable_text
from services.questions.question import OPTION_LETTERS, Question, option_lines
from services.questions.records import (
    Fault,
    ParsedQuestions,
    PlacedRecord,
    check_records,
    question_from_record,
    question_to_record,
)
from services.questions.units import Unit, fold, units_of

__all__ = [
    "OPTION_LETTERS",
    "Fault",
    "ParsedQuestions",
    "PlacedRecord",
    "Question",
    "Unit",
    "check_records",
    "fold",
    "normalise_prediction",
    "option_lines",
    "parse_question_lines",
    "question_from_record",
    "question_to_record",
    "read_json_lines",
    "render_question_lines",
    "storable_text",
    "units_of",
]
