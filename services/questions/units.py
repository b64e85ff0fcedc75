"""Units: the atom of pairing (GAT-3)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from services.questions.question import Question


@dataclass(frozen=True, slots=True)
class Unit:
    """One question, or several that count as one because all of them must be right."""

    unit_id: str
    task_type: str
    question_ids: tuple[str, ...]


def units_of(questions: Iterable[Question]) -> list[Unit]:
    """The units of these questions, in order of first appearance, each with its question ids in order.

    Raises ValueError if the questions of one unit differ in task type (an imported file never has such a unit).
    """
    grouped: dict[str, list[Question]] = {}
    for question in questions:
        grouped.setdefault(question.unit_id, []).append(question)
    return [_unit(unit_id, members) for unit_id, members in grouped.items()]


def _unit(unit_id: str, members: list[Question]) -> Unit:
    task_types = {member.task_type for member in members}
    if len(task_types) > 1:
        raise ValueError(f"unit {unit_id!r} mixes task types: {', '.join(sorted(task_types))}")
    return Unit(unit_id, members[0].task_type, tuple(member.question_id for member in members))


def fold(correct_by_question: Mapping[str, bool]) -> bool:
    """Whether a unit is right: only if every one of its questions is. Raises ValueError if it has none."""
    if not correct_by_question:
        raise ValueError("a unit has at least one question")
    return all(correct_by_question.values())
