"""QUA-13: no bytes and no JSON value break the readers of questions and predictions."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from services.questions import OPTION_LETTERS, normalise_prediction, parse_question_lines, render_question_lines

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just("answer"), inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.sampled_from(["question_id", "video_id", "task_type", "question", "options", "answer", "unit_id"])


@settings(max_examples=60, deadline=None)
@given(JSON_VALUES, st.lists(st.text(min_size=1), min_size=2, max_size=6))
def test_agt_5_every_json_value_becomes_storable_text(value: object, options: list[str]) -> None:
    text = normalise_prediction(value, options)
    assert "\x00" not in text
    assert normalise_prediction(text, options) == text or text not in OPTION_LETTERS
    text.encode("utf-8")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_qua_13_any_bytes_give_questions_or_faults(content: bytes) -> None:
    parsed = parse_question_lines(content)
    assert not parsed.questions


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(FIELDS, JSON_VALUES, max_size=7), max_size=4))
def test_qua_13_any_records_give_questions_that_survive_a_round_trip(records: list[dict[str, object]]) -> None:
    parsed = parse_question_lines("\n".join(json.dumps(record) for record in records).encode())
    assert parse_question_lines(render_question_lines(parsed.questions)).questions == parsed.questions
    assert len(parsed.questions) + len({fault.place for fault in parsed.faults}) == len(records)
