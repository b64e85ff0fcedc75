"""QUA-13, INF-3: whatever JSON a stream carries, reading it ends in an answer or in one classified fault."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.inference.domain.chat import Completion, Embeddings, ToolCall, Usage
from services.inference.domain.completion_stream import CompletionStream, error_in
from services.inference.domain.outcome import AttemptFault, Outcome
from services.inference.domain.sse import SseEvent
from services.inference.domain.stored_answer import decode_completion, decode_embeddings, encode_answer
from services.inference.domain.tool_calls import ToolCallMerger

NAMES = st.sampled_from(
    ["choices", "delta", "message", "content", "tool_calls", "index", "id", "function", "name", "arguments", "usage",
     "finish_reason", "error", "code", "type", "object", "model", "reasoning", "prompt_tokens", "text"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
    | st.sampled_from(["stop", "error", "429"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)  # fmt: skip
CHUNKS = st.builds(
    lambda delta, finish, extra: {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **extra},
    JSON,
    JSON,
    st.dictionaries(NAMES, JSON, max_size=2),
)


def fault_or(action):
    """What the action returns, or the fault it raises; any other exception fails the test."""
    try:
        return action()
    except AttemptFault as fault:
        return fault


@settings(max_examples=300)
@given(st.lists(JSON | CHUNKS, max_size=5), st.sampled_from([b"", b"error", b"message"]))
def test_qua_13_any_json_ends_in_an_answer_or_a_fault(chunks, name):
    stream = CompletionStream()

    def read():
        for chunk in chunks:
            stream.take(SseEvent(name, json.dumps(chunk).encode("utf-8", "surrogatepass")))
        return stream.completion("m")

    found = fault_or(read)
    if isinstance(found, AttemptFault):
        assert found.outcome in (Outcome.TRUNCATED, Outcome.TRANSIENT, Outcome.PERMANENT)
    else:
        assert decode_completion(encode_answer(found, "e")) == (found, "e")


@settings(max_examples=200)
@given(st.binary(max_size=60))
def test_qua_13_any_event_bytes_end_in_a_fault_or_nothing(data):
    found = fault_or(lambda: CompletionStream().take(SseEvent(b"", data)))
    assert found is None or found.code


@settings(max_examples=200)
@given(st.binary(max_size=80) | JSON.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")))
def test_qua_13_any_stored_bytes_are_an_answer_or_none(stored):
    assert decode_completion(stored) is None
    assert decode_embeddings(stored) is None


@settings(max_examples=100)
@given(JSON)
def test_qua_13_any_body_is_an_error_or_none(body):
    assert error_in(body) is None or isinstance(error_in(body), AttemptFault)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=100)
@given(TEXT, TEXT, st.lists(st.builds(ToolCall, TEXT, TEXT, TEXT), max_size=3), st.none() | TEXT, st.booleans())
def test_inf_5_what_is_stored_comes_back_whole(content, reasoning, calls, finish, with_usage):
    usage = Usage(1, 2, 3, 1) if with_usage else None
    completion = Completion(content, reasoning, tuple(calls), finish, usage, "m")
    assert decode_completion(encode_answer(completion, "e")) == (completion, "e")
    vectors = Embeddings(((0.1, 1e-9), (2.0, -3.5)), usage, "m")
    assert decode_embeddings(encode_answer(vectors, "e")) == (vectors, "e")


def piece(index=None, call_id=None, name=None, arguments=None):
    fields = {} if index is None else {"index": index}
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**fields, **({} if call_id is None else {"id": call_id}), "function": function}


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([piece(0, "a", "f", '{"x"'), piece(0, None, None, ":1}")], [("a", "f", '{"x":1}')]),
        ([piece(1, "b", "g", "2"), piece(0, "a", "f", "1")], [("a", "f", "1"), ("b", "g", "2")]),
        ([piece(0, "a", "f", "{"), piece(1, "b", "g", "{"), piece(0, arguments="}"), piece(1, arguments=" }")],
         [("a", "f", "{}"), ("b", "g", "{ }")]),
        ([piece(0, "a", "f", "{}"), piece(0, "b", "f", "{}")], [("a", "f", "{}"), ("b", "f", "{}")]),
        ([piece(None, "a", "f", "{"), piece(arguments="}"), piece(None, "b", "f", "{}")],
         [("a", "f", "{}"), ("b", "f", "{}")]),
        ([piece(None, None, "f", "{}"), piece(None, None, "f", "{}")], [("", "f", "{}"), ("", "f", "{}")]),
        ([piece(0, "a", "f", "{"), piece(0, "a", "f", "}")], [("a", "f", "{}")]),
        ([piece(0, "a", "f"), piece(0, None, "f", "{}")], [("a", "f", "{}")]),
        ([piece(-1, "a", "f", "{}"), piece(10**9, "b", "g", "{}")], [("a", "f", "{}"), ("b", "g", "{}")]),
        ([piece("0", "a", "f", "{}")], [("a", "f", "{}")]),
        ([{}, {"function": None}, {"function": "x", "id": 3}], [("", "", "")]),
    ],
)  # fmt: skip
def test_inf_3_tool_calls_are_merged_by_index_and_none_is_lost(pieces, calls):
    merger = ToolCallMerger()
    added = [merger.add(item) for item in pieces]
    assert [(c.call_id, c.name, c.arguments) for c in merger.result()] == calls
    # What a stream's reader appends by index is the same.
    by_index = {}
    for item in added:
        old = by_index.get(item.index, ("", "", ""))
        by_index[item.index] = (old[0] + item.call_id, old[1] + item.name, old[2] + item.arguments)
    assert [by_index[index] for index in sorted(by_index)] == calls
