import pytest

from services.simulator.domain.reading import read_question
from services.simulator.domain.words import Lexicon

LEXICON = Lexicon()


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ("What does the potter do right after she rolls out a coil?", "after"),
        ("what did the cat do before it jumped", "before"),
        ("Where does the potter wedge the clay?", ""),
    ],
)
def test_a_question_names_a_side_in_time(text: str, direction: str) -> None:
    assert read_question(text, LEXICON).direction == direction


def test_the_time_clause_is_the_anchor() -> None:
    reading = read_question("What does the potter do right after she rolls out a coil?", LEXICON)
    assert reading.anchor == LEXICON.stems("rolls out a coil")
    assert "potter" in reading.subject


def test_counting_denial_and_order_are_recognised() -> None:
    assert read_question("How many times does he wave?", LEXICON).counts_events
    assert read_question("how many people are there", LEXICON).counts
    assert not read_question("how many people are there", LEXICON).counts_events
    assert read_question("Which of these does the potter not use?", LEXICON).denies
    assert read_question("Which of these happens first?", LEXICON).order == "first"
    plain = read_question("Which of these does the potter use?", LEXICON)
    assert (plain.counts, plain.denies, plain.order) == (False, False, "")
