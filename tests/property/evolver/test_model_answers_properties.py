"""EVO-2 and QUA-13: an answer is either the object that was written or a fault."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from services.evolver.domain.answers import read_object
from services.evolver.domain.errors import AnswerFault

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=4)
PROSE = st.text(alphabet="abc ., \n\"'`", max_size=25)


@settings(max_examples=200, deadline=None)
@given(OBJECTS, PROSE, PROSE, st.booleans())
def test_evo_2_the_object_survives_prose_and_fences(
    value: dict[str, object], before: str, after: str, fenced: bool
) -> None:
    written = json.dumps(value, ensure_ascii=False)
    body = f"\n```json\n{written}\n```\n" if fenced else written
    assert read_object(before + body + after, "stop") == value


@settings(max_examples=200, deadline=None)
@given(OBJECTS.filter(bool), st.data())
def test_evo_2_a_truncated_object_is_never_read(value: dict[str, object], data: st.DataObject) -> None:
    written = json.dumps(value)
    cut = data.draw(st.integers(0, len(written) - 1))
    try:
        read_object(written[:cut], "stop")
    except AnswerFault:
        return
    raise AssertionError(f"a part was read: {written[:cut]!r}")


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='{}[]":, ab1\\`\n', max_size=60), st.sampled_from(["stop", "length", ""]))
def test_qua_13_any_text_gives_an_object_or_a_fault(text: str, finish_reason: str) -> None:
    try:
        value: object = read_object(text, finish_reason)
    except AnswerFault as fault:
        value = fault
    assert isinstance(value, dict) or (isinstance(value, AnswerFault) and value.faults)
