"""GAT-3: units and folding."""

from dataclasses import replace

import pytest

from services.questions import Question, Unit, fold, option_lines, units_of

QUESTION = Question("q1", "v1", "Counting", "How many?", ("one", "two"), "B", "q1")


def test_gat_3_units_keep_the_order_of_first_appearance() -> None:
    questions = [
        replace(QUESTION, question_id="q1", unit_id="u1"),
        replace(QUESTION, question_id="q2", unit_id="q2"),
        replace(QUESTION, question_id="q3", unit_id="u1"),
    ]
    assert units_of(questions) == [Unit("u1", "Counting", ("q1", "q3")), Unit("q2", "Counting", ("q2",))]


def test_gat_3_a_unit_of_two_task_types_is_refused() -> None:
    with pytest.raises(ValueError, match="mixes task types: Counting, Other"):
        units_of([QUESTION, replace(QUESTION, question_id="q2", task_type="Other")])


@pytest.mark.parametrize(("answers", "right"), [((True, True), True), ((True, False), False), ((False,), False)])
def test_gat_3_a_unit_is_right_only_if_all_its_questions_are(answers: tuple[bool, ...], right: bool) -> None:
    assert fold({str(index): answer for index, answer in enumerate(answers)}) is right


def test_gat_3_a_unit_without_questions_has_no_outcome() -> None:
    with pytest.raises(ValueError, match="at least one question"):
        fold({})


def test_a_question_without_a_video_is_grouped_by_its_unit() -> None:
    assert QUESTION.group_id == "v1"
    assert replace(QUESTION, video_id="", unit_id="u9").group_id == "u9"


def test_option_lines_put_each_option_on_one_line() -> None:
    assert option_lines(("one\ntwo", " three ")) == "A. one two\nB. three"
