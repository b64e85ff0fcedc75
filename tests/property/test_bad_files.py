"""QUA-13: bad bytes through everything that reads files, streams or models' answers.

`python -m bench.bad_input` is the long form: it takes the same corpus, and many more mutations of it.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.bad_readers import fuzzed, outcome_of
from bench.mutations import hard_inputs, mutated, sound_inputs
from bench.readers import READERS
from services.questions import parse_question_lines


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", hard_inputs())
def test_qua_13_bad_bytes_are_read_or_refused_clearly(reader: str, name: str) -> None:
    assert outcome_of(reader, hard_inputs()[name])[1] == ""


@pytest.mark.parametrize("reader", READERS)
def test_qua_13_what_is_sound_is_accepted(reader: str) -> None:
    assert sound_inputs(reader)
    assert [outcome_of(reader, content) for content in sound_inputs(reader).values()] == [(False, "")] * len(
        sound_inputs(reader)
    )


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(READERS)), st.integers(0, 2**32))
def test_qua_13_and_so_are_mutations_of_both(reader: str, seed: int) -> None:
    content = mutated(random.Random(seed), list(sound_inputs(reader).values()), list(hard_inputs().values()))
    assert outcome_of(reader, content)[1] == "", content


def test_a_reader_that_fails_or_mumbles_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(content: bytes) -> tuple[str, ...]:
        return ("something is wrong",) if content.startswith(b"{") else (content.decode(),)

    monkeypatch.setattr("bench.readers.READERS", READERS)
    reader = READERS["questions.jsonl"]
    monkeypatch.setitem(READERS, "questions.jsonl", type(reader)(fails, reader.names))  # type: ignore[arg-type]
    assert outcome_of("questions.jsonl", b"{}") == (True, "unclear: 'something is wrong'")
    refused, fault = outcome_of("questions.jsonl", b"\xff")
    assert refused
    assert fault.startswith("UnicodeDecodeError: ")
    found = fuzzed("questions.jsonl", 0, random.Random(1), 0.0)
    assert any("the sound input" in fault for fault in found.faults)


def test_the_question_file_reader_names_the_line_of_a_fault() -> None:
    faults = parse_question_lines(b'{"question_id": "q"}\n\n{"cut\n').faults
    assert faults
    assert all("line" in str(fault) for fault in faults)
