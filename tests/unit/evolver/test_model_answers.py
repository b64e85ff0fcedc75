"""EVO-2: which answers are read, and which are sent back."""

import pytest

from services.evolver.domain.answers import read_object
from services.evolver.domain.errors import AnswerFault


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '```json\n{"a": 1}\n```',
        'Here is the answer:\n\n{"a": 1}\n\nI hope it helps.',
        'The gap {x} and {node id} aside: {"a": 1}',
        '<think>maybe {"a": 2} or {"a": 3}</think>\n{"a": 1}',
        '{"a": 1}\r\n',
        '{"a": 1} and again {"a": 1}',
        '{\n  "a": 1\n}',
        '\ufeff{"a": 1}',
    ],
)
def test_evo_2_one_object_is_read_whatever_stands_around_it(text: str) -> None:
    assert read_object(text, "stop") == {"a": 1}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no JSON object"),
        ("I can't.", "no JSON object"),
        ('{"a": 1} or {"a": 2}', "differ"),
        ('{"a": 1', "broken"),
        ('{"edits": [{"op": "append"}], "x": ', "broken"),
        ('{"edits": [{"op": "append"} {"op": "delete"}]}', "broken"),
        ('{edits: [{"op": "append"}]}', "no JSON object"),
        ("{'a': 1}", "broken"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": NaN}', "NaN"),
        ('[{"a": 1}]', "inside a list"),
        ('```json\n[{"a": 1}, {"b": 2}]\n```', "inside a list"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "broken"),
        ('{x {"a": 1}', "broken"),
    ],
)
def test_evo_2_anything_else_is_a_fault_that_says_what_is_wrong(text: str, fault: str) -> None:
    with pytest.raises(AnswerFault, match=fault):
        read_object(text, "stop")


def test_evo_2_a_cut_off_answer_is_no_answer_even_if_it_parses() -> None:
    with pytest.raises(AnswerFault, match="cut off"):
        read_object('{"a": 1}', "length")
