"""QUA-13: no reply of a model, and no arguments of a tool call, break the agent or what is stored of it."""

import json
import time

from hypothesis import given, settings
from hypothesis import strategies as st
from videotree.inference.v1 import agent_pb2, agent_service_pb2

from services.inference.adapters.store_messages import prediction_message, record_value, trace_messages
from services.inference.domain.agent_loop import LoopLimits, LoopState, Stop, Submit, after_reply, after_tool
from services.inference.domain.agent_reply import Turn, UnreadableReply, read_turn
from services.inference.domain.agent_transcript import EntryKind, TranscriptEntry, steps_json
from services.inference.domain.errors import InvalidRequest
from services.inference.domain.prediction import AnswerRecord, submission_of
from services.inference.rpc.agent_translate import answer_request
from tests.builders.videos import question

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
ARGS = st.dictionaries(st.sampled_from(["answer", "evidence", "reasoning", "x"]), JSON_VALUES, max_size=4)
PIECES = st.sampled_from(
    [
        '{"action": {"tool": "view_node", "args": {}}}',
        '{"',
        "}",
        "]",
        "```json\n",
        "'",
        ":",
        ",",
        "\\u",
        "</think>",
        "a",
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES | st.text(max_size=10), max_size=40).map("".join))
def test_agt_1_any_text_is_read_or_refused_and_never_slowly(reply: str) -> None:
    started = time.process_time()
    try:
        turn = read_turn(reply)
    except UnreadableReply as fault:
        assert str(fault)  # noqa: PT017 -- either outcome is right
    else:
        assert turn.tool
    assert time.process_time() - started < 1.0


@settings(max_examples=100, deadline=None)
@given(ARGS, st.text(st.characters(), max_size=20))
def test_agt_5_whatever_is_submitted_can_be_stored_and_comes_back(args: dict[str, object], text: str) -> None:
    asked = question()
    entry = TranscriptEntry(0, EntryKind.ANSWER, text, args, text, text)
    record = AnswerRecord("r", asked, submission_of(args, asked, 3), transcript=(entry,))
    message = prediction_message(record)
    assert record_value(type(message).FromString(message.SerializeToString()), asked).submission == record.submission
    (trace,) = trace_messages(record)
    assert isinstance(json.loads(trace.args_json), dict)
    assert len(json.loads(steps_json(record.transcript))) == 1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["view", "fly", "bad"]), min_size=1, max_size=200))
def test_agt_1_every_conversation_ends_within_its_bounds(replies: list[str]) -> None:
    limits = LoopLimits(max_steps=4, max_unparsable=3, max_invalid_calls=3)
    state, turns = LoopState(), 0
    for kind in replies * (1 + 100 // len(replies)):
        turns += 1
        reply = UnreadableReply("x") if kind == "bad" else Turn("", "", kind, {})
        state, decision = after_reply(state, limits, reply, {"view"})
        if isinstance(decision, Stop | Submit):
            break
        if kind == "view":
            state, _ = after_tool(state, limits)
    assert turns <= limits.max_unparsable * (limits.max_steps + limits.max_invalid_calls + 1)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
REQUESTS = st.builds(
    agent_service_pb2.AnswerQuestionsRequest,
    workspace=TEXT,
    dataset=TEXT,
    question_ids=st.lists(TEXT, max_size=4),
    skills=st.builds(agent_pb2.SkillSet, version=TEXT, overrides=st.dictionaries(TEXT, TEXT, max_size=2)),
    prompts_version=TEXT,
    run_id=TEXT,
    salt=st.none() | TEXT,
    solver=st.integers(-1, 4),
    skill_mode=st.integers(-1, 5),
    limits=st.builds(
        agent_pb2.AgentLimits, max_steps=st.integers(-(2**31), 2**31 - 1), concurrency=st.integers(-5, 2_000)
    ),
    resume=st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(REQUESTS)
def test_qua_13_a_request_of_any_content_is_understood_or_names_its_field(
    message: agent_service_pb2.AnswerQuestionsRequest,
) -> None:
    try:
        request = answer_request(message, 16, None)
    except InvalidRequest as fault:
        assert fault.field  # noqa: PT017 -- either outcome is right
        return
    assert 1 <= request.limits.max_steps <= 200
    assert 1 <= request.concurrency <= 1024
    assert len(set(request.question_ids)) == len(request.question_ids) > 0
