import pytest

from services.simulator.domain.words import Lexicon, coverage, number_in, stem, stems


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("opens", "opening"),
        ("washes", "washed"),
        ("carries", "carried"),
        ("scrubbed", "scrubs"),
        ("glazing", "glaze"),
        ("two", "2"),
    ],
)
def test_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_different_words_keep_different_stems() -> None:
    assert len({stem(word) for word in ("wedge", "weigh", "water", "wall", "bus", "business", "sing")}) == 7


def test_stop_words_carry_no_meaning() -> None:
    assert stems("What does the potter do?") == {"potter"}


def test_words_declared_the_same_count_as_one() -> None:
    lexicon = Lexicon([["child", "kid", "toddler"]])
    assert lexicon.stems("two kids") == lexicon.stems("two toddlers")
    assert Lexicon().stems("two kids") != Lexicon().stems("two toddlers")


def test_coverage_is_the_share_of_the_wanted() -> None:
    assert coverage(frozenset("ab"), frozenset("bc")) == 0.5
    assert coverage(frozenset(), frozenset("bc")) == 0.0


@pytest.mark.parametrize(("text", "number"), [("3", 3), ("Three.", 3), ("twelve people", 12), ("none of it", None)])
def test_the_first_number_of_a_text_is_found(text: str, number: int | None) -> None:
    assert number_in(text) == number
