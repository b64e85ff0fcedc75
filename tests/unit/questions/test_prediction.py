"""AGT-5: whatever the model submits becomes text before it is stored."""

import pytest

from services.questions import normalise_prediction

COLOURS = ("Red", "Blue.", "A dark green", "It's 5 p.m.")


@pytest.mark.parametrize(
    ("submitted", "stored"),
    [
        ("B", "B"),
        ("b", "B"),
        (" b. because the car is blue", "B"),
        ("B.", "B"),
        ("(B)", "B"),
        ("(b) the car", "B"),
        ("B) the car", "B"),
        ("B: the car", "B"),
        ("B.Blue", "B"),
        ("B. Blue", "B"),
        (["B"], "B"),
        ([["b."]], "B"),
        ({"answer": "B"}, "B"),
        ({"answer": ["B"], "why": "x"}, "B"),
        ("blue", "B"),
        ("  BLUE !", "B"),
        ("a  dark\nGREEN.", "C"),
        ("it's 5 p.m", "D"),
        (None, ""),
        ([], "[]"),
        ({}, "{}"),
        (2, "2"),
        (1.5, "1.5"),
        (True, "true"),
        ({"letter": "B"}, '{"letter": "B"}'),
        (["A", "B"], '["A", "B"]'),
        ("A, B", "A, B"),
        ("A or B", "A or B"),
        ("A and B are both right", "A and B are both right"),
        ("a car", "a car"),
        ("E", "E"),
        ("E. none of them", "E. none of them"),
        ("B. Red", "B. Red"),
        ("Because of the car", "Because of the car"),
        ("", ""),
        ("...", "..."),
        ("x\x00y\ud800", "xy?"),
    ],
)
def test_agt_5_every_odd_shape_becomes_text_and_names_an_option_only_when_it_is_plain(
    submitted: object, stored: str
) -> None:
    assert normalise_prediction(submitted, COLOURS) == stored


def test_agt_5_a_number_is_the_option_whose_text_it_is_and_never_an_index() -> None:
    assert normalise_prediction(2, ("1", "2", "3", "4")) == "B"
    assert normalise_prediction(2, ("7", "8", "9")) == "2"


def test_agt_5_a_repeated_option_text_is_ambiguous_and_stays_text_while_its_letter_counts() -> None:
    options = ("Red", "red", "Blue", "Green")
    assert normalise_prediction("red", options) == "red"
    assert normalise_prediction("B. red", options) == "B"
    assert normalise_prediction("A", options) == "A"


def test_agt_5_a_letter_wins_over_an_option_whose_text_is_another_letter() -> None:
    assert normalise_prediction("B", ("B", "C", "D")) == "B"


def test_agt_5_an_option_text_that_looks_like_a_letter_with_a_dot_is_read_as_text() -> None:
    assert normalise_prediction("a.m.", ("p.m.", "a.m.")) == "B"
    assert normalise_prediction("A. M. Smith", ("J. Jones", "A. M. Smith")) == "B"
