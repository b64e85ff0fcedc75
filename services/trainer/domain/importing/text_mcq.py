"""Text-only multiple choice (id, question, options, answer), for the direct solver."""

from services.questions import ParsedQuestions
from services.trainer.domain.importing.gathering import Reading
from services.trainer.domain.importing.questions_jsonl import parse_questions_jsonl


def parse_text_mcq(content: bytes, task_type: str) -> ParsedQuestions:
    """The questions of a JSONL file without videos; those that name no task type are of the given one."""
    return parse_questions_jsonl(content, Reading(text_only=True, task_type=task_type))
