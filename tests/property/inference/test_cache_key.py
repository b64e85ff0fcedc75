"""INF-5: what makes a key another key, and what does not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.inference.domain.cache_key import KEY_PREFIX, cache_key, salt_key_prefix
from services.inference.domain.chat import ChatRequest, ImagePart, Message, Role, TextPart, ToolCall
from services.inference.domain.endpoint import Endpoint
from services.inference.domain.errors import InvalidRequest
from services.inference.domain.upstream_body import chat_body, encode_json

ENDPOINT = Endpoint(name="e", roles=frozenset(Role), base_url="http://x/v1", model="m")
IMAGE = ImagePart(b"\xff\xd8\x00", "image/jpeg")
BASE = ChatRequest(
    role=Role.AGENT,
    messages=(
        Message("system", "s"),
        Message("user", (TextPart("look"), IMAGE)),
        Message("assistant", "", tool_calls=(ToolCall("1", "f", "{}"),)),
        Message("tool", "r", tool_call_id="1"),
    ),
    parameters={"temperature": 0.5, "max_tokens": 9, "unheard_of": {"a": 1, "b": [1, 2]}},
    response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    tools=({"type": "function", "function": {"name": "f"}},),
)


def key(request=BASE, *, endpoint=ENDPOINT, salt="s", seed_from_salt=False, kind="chat"):
    body = chat_body(request, endpoint, salt=salt, seed_from_salt=seed_from_salt)
    return cache_key(kind=kind, model=endpoint.model, body=body, salt=salt)


def changed(**fields):
    values = {name: getattr(BASE, name) for name in ("role", "messages", "parameters", "response_format", "tools")}
    return ChatRequest(**{**values, **fields})


def with_message(index, message):
    messages = list(BASE.messages)
    messages[index] = message
    return changed(messages=tuple(messages))


VARIANTS = {
    "text": with_message(0, Message("system", "s ")),
    "message role": with_message(0, Message("user", "s")),
    "message name": with_message(0, Message("system", "s", name="n")),
    "image bytes": with_message(1, Message("user", (TextPart("look"), ImagePart(b"\xff\xd8\x01", "image/jpeg")))),
    "image type": with_message(1, Message("user", (TextPart("look"), ImagePart(b"\xff\xd8\x00", "image/png")))),
    "order of parts": with_message(1, Message("user", (IMAGE, TextPart("look")))),
    "no image": with_message(1, Message("user", (TextPart("look"),))),
    "part or text": with_message(1, Message("user", "look")),
    "tool call": with_message(2, Message("assistant", "", tool_calls=(ToolCall("1", "f", "{ }"),))),
    "tool call id": with_message(2, Message("assistant", "", tool_calls=(ToolCall("2", "f", "{}"),))),
    "tool call name": with_message(2, Message("assistant", "", tool_calls=(ToolCall("1", "g", "{}"),))),
    "answered call": with_message(3, Message("tool", "r", tool_call_id="2")),
    "fewer messages": changed(messages=BASE.messages[:3]),
    "order of messages": changed(messages=BASE.messages[::-1]),
    "temperature": changed(parameters={**BASE.parameters, "temperature": 0.6}),
    "integer for float": changed(parameters={**BASE.parameters, "temperature": 1}),
    "float for integer": changed(parameters={**BASE.parameters, "temperature": 1.0}),
    "true for one": changed(parameters={**BASE.parameters, "temperature": True}),
    "null": changed(parameters={**BASE.parameters, "temperature": None}),
    "text for number": changed(parameters={**BASE.parameters, "temperature": "1"}),
    "parameter gone": changed(parameters={"temperature": 0.5, "max_tokens": 9}),
    "unknown parameter": changed(parameters={**BASE.parameters, "unheard_of": {"a": 1, "b": [2, 1]}}),
    "new parameter": changed(parameters={**BASE.parameters, "seed": 1}),
    "response format": changed(response_format={"type": "json_object"}),
    "no response format": changed(response_format=None),
    "tools": changed(tools=({"type": "function", "function": {"name": "g"}},)),
    "no tools": changed(tools=()),
}


def test_inf_5_every_field_of_a_request_changes_the_key():
    keys = {name: key(request) for name, request in VARIANTS.items()}
    keys |= {
        "base": key(),
        "salt": key(salt="t"),
        "no salt": key(salt=None),
        "empty salt": key(salt=""),
        "salt called none": key(salt="none"),
        "salt called null": key(salt="null"),
        "model": key(endpoint=Endpoint(name="e", roles=frozenset(Role), base_url="http://x/v1", model="m2")),
        "default parameter": key(
            endpoint=Endpoint(
                name="e", roles=frozenset(Role), base_url="http://x/v1", model="m", parameters={"top_p": 1}
            )
        ),
        "seed from salt": key(seed_from_salt=True),
        "kind": key(kind="embed"),
    }
    assert len(set(keys.values())) == len(keys)
    assert all(k.startswith(KEY_PREFIX) for k in keys.values())


def test_inf_5_the_key_does_not_depend_on_role_endpoint_name_or_address():
    other = Endpoint(name="other", roles=frozenset({Role.JUDGE}), base_url="https://y/v1", model="m", api_key="k")
    assert key(changed(role=Role.JUDGE), endpoint=other) == key()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def reordered(value):
    if isinstance(value, dict):
        return {name: reordered(value[name]) for name in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=100)
@given(st.dictionaries(st.text().map(lambda name: f"p_{name}"), JSON, max_size=5))
def test_inf_5_the_order_of_keys_changes_nothing_at_any_depth(parameters):
    try:
        first = key(changed(parameters=parameters))
    except InvalidRequest:  # a lone surrogate has no UTF-8 form
        return
    assert key(changed(parameters=reordered(parameters))) == first


@settings(max_examples=100)
@given(JSON, JSON)
def test_inf_5_different_parameters_have_different_keys(one, two):
    try:
        same = encode_json({"v": one}, sort_keys=True) == encode_json({"v": two}, sort_keys=True)
        keys = key(changed(parameters={"v": one})), key(changed(parameters={"v": two}))
    except InvalidRequest:
        return
    assert (keys[0] == keys[1]) is same


def test_inf_5_the_body_that_is_sent_keeps_the_order_of_a_schema():
    schema = {"type": "json_schema", "json_schema": {"properties": {"zz": 1, "aa": 2}}}
    body = encode_json(chat_body(changed(response_format=schema), ENDPOINT, salt=None, seed_from_salt=False))
    assert body.index(b'"zz"') < body.index(b'"aa"')


def test_inf_6_a_salt_names_its_keys_and_is_hidden_in_them():
    assert key(salt="gate-base").startswith(salt_key_prefix("gate-base"))
    assert salt_key_prefix("gate-base") != salt_key_prefix("gate-base2") != salt_key_prefix(None)
    assert "*" not in key(salt="*[?]\\")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"messages": ()}, "messages"),
        ({"messages": (Message("wizard", "x"),)}, "messages[0].role"),
        ({"parameters": {"temperature": float("nan")}}, "parameters.temperature"),
        ({"parameters": {"x": [1, {"y": float("inf")}]}}, "parameters.x"),
        ({"parameters": {"stream": False}}, "parameters.stream"),
        ({"parameters": {"model": "other"}}, "parameters.model"),
        ({"parameters": {"n": 2}}, "parameters.n"),
    ],
)
def test_qua_13_a_request_that_makes_no_sense_names_its_field(fields, field):
    with pytest.raises(InvalidRequest) as caught:
        key(changed(**fields))
    assert caught.value.field == field
