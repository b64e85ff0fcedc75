"""What the simulated optimizer reads off the failures that it is shown (SIM-1)."""

from services.evolver.domain.case_pack import PackedCase
from services.evolver.domain.diagnosis import Category, Cause, Diagnosis, Explanation
from services.evolver.domain.targets import case_text
from services.simulator.domain.failures import Failure, answered_by, pattern_of, read_failures

MISSED = Failure("q1", "missed_nodes", "lapse")
SILENT = Failure("q2", "skill_silent", "defect")
DEFECT = Failure("q3", "missed_nodes", "defect")


def shown(question_id: str, category: Category, cause: Cause) -> str:
    """A failure as the product writes it into the prompt."""
    found = Diagnosis(question_id, question_id, "Any", "f", Explanation(category, cause, "Because."), False, (), {})
    return case_text(PackedCase(question_id, question_id, "<question>Why?</question>", found, False))


def test_failures_are_read_from_the_products_own_case_texts() -> None:
    text = "\n\n".join(
        [shown("q1", Category.MISSED_NODES, Cause.LAPSE), shown("q2", Category.SKILL_SILENT, Cause.DEFECT)]
    )
    assert read_failures(text) == (MISSED, SILENT)
    assert read_failures('<case id="q9">\nwrong\n</case>') == (Failure("q9"),)
    assert read_failures("(none)") == ()


def test_advice_answers_the_failures_of_its_categories_defects_first() -> None:
    failures = (MISSED, SILENT, DEFECT)
    assert answered_by(["missed_nodes"], failures) == (DEFECT, MISSED)
    assert answered_by([], failures) == (SILENT, DEFECT, MISSED)
    assert answered_by(["budget"], (*failures, Failure("q9"))) == (Failure("q9"),)


def test_the_pattern_counts_the_failures_that_have_it() -> None:
    assert pattern_of((DEFECT, MISSED), 3) == (
        "2 of 3 failures: what decides them stood in nodes that were not opened."
    )
    assert pattern_of((), 3) == ""
