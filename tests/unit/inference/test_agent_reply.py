"""AGT-1: replies are read leniently, but only one unambiguous object."""

import json

import pytest

from services.inference.domain.agent_reply import UnreadableReply, read_object, read_turn

GOOD = '{"reflect": "r", "plan": "p", "action": {"tool": "view_node", "args": {"node_id": "a"}}}'


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Let me think.\n{GOOD}\nThat is all.",
        f'<think>maybe {{"action": {{"tool": "x"}}}}</think>{GOOD}',
        f"{GOOD}\n{GOOD}",
        f"I use {{curly}} braces. {GOOD}",
        f"{GOOD} and {{curly}} braces",
        GOOD.replace('"', "'"),
        GOOD[:-3] + "},}}",
        GOOD.replace('"r"', '"he said "stop" twice"'),
        GOOD.replace('"r"', '"line one\nline two"'),
        GOOD.replace('"p"', '"p" /* a comment */'),
        GOOD.replace('"r"', "null"),
    ],
)
def test_agt_1_small_faults_of_form_are_read_through(reply: str) -> None:
    turn = read_turn(reply)
    assert (turn.tool, turn.args) == ("view_node", {"node_id": "a"})


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("", "no JSON object"),
        ("I don't know.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        (GOOD + GOOD.replace('"a"', '"b"'), "more than one"),
        (GOOD + "\n" + GOOD.replace('"a"', '"b"')[:-9], "more than one"),
        (GOOD[:-9] + "\n" + GOOD.replace('"a"', '"b"'), "more than one"),
        ('{"action": {"tool": "a"}, "action": {"tool": "b"}}', "twice"),
        ('{"answer": "B"}', '"action"'),
        ('{"action": "view_node"}', '"action"'),
        ('{"action": {"args": {}}}', '"tool"'),
        ('{"action": {"tool": 3}}', '"tool"'),
        ('{"action": {"tool": "view_node", "args": ["a"]}}', '"args"'),
        ('{"a":' * 60_000, ""),
        ('{"a":' * 10_000, ""),
        ('{"a": ' + "9" * 5_000 + "}", ""),
        ("{" * 150_000, ""),
        ("x" * 300_000, "too long"),
    ],
)
def test_agt_1_anything_else_is_told_to_the_model(reply: str, fault: str) -> None:
    with pytest.raises(UnreadableReply) as caught:
        read_turn(reply)
    assert fault in str(caught.value)


def test_agt_1_a_reply_that_was_cut_off_is_never_read() -> None:
    with pytest.raises(UnreadableReply, match="cut off"):
        read_turn(GOOD, cut_off=True)


def test_agt_1_numbers_that_json_does_not_know_become_text() -> None:
    assert read_object('{"answer": NaN}') == {"answer": "NaN"}
    assert json.dumps(read_object('{"answer": "B"}')) == '{"answer": "B"}'
