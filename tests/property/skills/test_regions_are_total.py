"""QUA-13: any text at all has well-formed regions."""

from hypothesis import given, settings
from hypothesis import strategies as st

from services.skills import (
    MARKERS,
    block_spans,
    fence_spans,
    marker_faults,
    normalise_newlines,
    protected_spans,
    replace_block,
    section_spans,
    text_sha256,
)

PIECES = st.sampled_from(
    [*MARKERS, "---\n", "name: x\n", "```\n", "~~~", "## Tools\n", "- a rule\n", "\r\n", "\n", "é", "\ufeff"]
)
TEXTS = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=14).map("".join))


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_spans_are_ordered_disjoint_and_inside_the_text(text: str) -> None:
    text = normalise_newlines(text)
    for spans in (protected_spans(text), fence_spans(text), tuple(span for _, span in block_spans(text))):
        edges = [edge for span in spans for edge in (span.start, span.end)]
        assert edges == sorted(edges)
        assert all(0 <= edge <= len(text) for edge in edges)
    section_spans(text, ["## Tools"])
    text_sha256(text)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.text(alphabet="ab \n", max_size=20))
def test_replacing_a_block_of_a_sound_text_changes_nothing_else(text: str, content: str) -> None:
    text = normalise_newlines(text)
    if marker_faults(text):
        return
    before = {name: span.of(text) for name, span in block_spans(text)}
    changed = replace_block(text, "MOMENTUM", content)
    after = {name: span.of(changed) for name, span in block_spans(changed)}
    assert marker_faults(changed) == ()
    assert after.get("APPENDIX") == before.get("APPENDIX")
    if "MOMENTUM" in before:
        assert changed.replace(after["MOMENTUM"], "") == text.replace(before["MOMENTUM"], "")
    else:
        assert changed.startswith(text)
