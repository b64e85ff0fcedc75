"""Whatever a prompt holds, the models answer (QUA-13), and the same answer again (SIM-1)."""

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from services.simulator.domain.errors import BadRequest
from services.simulator.domain.models import Knowledge, read_chat_call, reply_to
from services.simulator.domain.tool_model import extract
from services.simulator.domain.vision_model import jpeg_comments
from services.simulator.domain.words import Lexicon
from tests.builders.simulated_world import sample_knowledge

KNOWLEDGE: Knowledge = sample_knowledge()
TAGS = ("question", "options", "overview", "skill", "trace", "tree", "text", "failures", "edits", "max_steps", "task")
fragments = st.one_of(
    st.text(max_size=40),
    st.sampled_from([f"<{name}>" for name in TAGS] + [f"</{name}>" for name in TAGS]),
    st.sampled_from(
        ["\n", "A. one\nB. two", "- v_1 [0s-9s] x", '<observation tool="view_node" step="1" steps_left="2">']
    ),
    st.sampled_from(["<task>diagnose.skill</task>", "<task>evolve.rank</task>", "<task>evolve.rewrite</task>", "{}"]),
)
texts = st.lists(fragments, max_size=12).map("\n".join)
contents = st.one_of(texts, st.none(), st.lists(st.one_of(st.none(), st.fixed_dictionaries({"type": st.just("text")}))))
messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": contents}), min_size=1
)
MODELS = st.sampled_from(["sim-agent", "sim-dice", "sim-judge", "sim-evolve", "sim-tool", "sim-vision"])


@given(model=MODELS, conversation=messages, seed=st.one_of(st.none(), st.integers()))
@settings(max_examples=150, deadline=None)
def test_sim_1_any_conversation_is_answered_and_answered_the_same_again(
    model: str, conversation: list[dict[str, Any]], seed: int | None
) -> None:
    call = read_chat_call({"model": model, "messages": conversation, "seed": seed})
    assert reply_to(call, KNOWLEDGE) == reply_to(call, KNOWLEDGE)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)


@given(
    body=st.one_of(
        json_values, st.dictionaries(st.sampled_from(["model", "messages", "seed", "max_tokens"]), json_values)
    )
)
@settings(max_examples=150, deadline=None)
def test_any_body_is_a_call_or_refused(body: object) -> None:
    with suppress(BadRequest):
        assert read_chat_call(body).messages


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_searched_for_comments(content: bytes) -> None:
    assert all(isinstance(one, str) for one in jpeg_comments(b"\xff\xd8" + content))


@given(st.text(max_size=300), st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_an_extract_invents_nothing(text: str, question: str) -> None:
    found = extract(text, question, Lexicon())
    assert all(word in text for word in found.split()) or not text.strip()
