"""EVO-8 and QUA-13: whatever the skill and the edits, every invariant of a safe edit holds."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.evolver.domain.apply import apply_edits
from services.evolver.domain.edits import CandidateStatus, Edit, EditOp, EditStatus
from services.evolver.domain.guard import PROMPT_GUARD, SKILL_GUARD
from services.evolver.domain.validate import Rules, free_body
from services.skills import (
    MARKERS,
    block_spans,
    front_matter_span,
    marker_faults,
    normalise_newlines,
    open_fence,
    section_spans,
)

FRONT = "---\nname: a\ndescription: b\ntask_type: C\n---\n"
PIECES = st.sampled_from(
    [
        FRONT, *MARKERS, "---\n", "# Title\n", "## Tools\n", "## Output format\n", "- look first\n", "- look again\n",
        "Open the scene before the event.\n", "```\n", "~~~\n", "code\n", "\n", "\n\n",
        "\r\n", "é🙂", "\ufeff", " ", "\u2028",
        "<!-- APPENDIX_", "START -->", "<!-- ", " -->",
    ]
)  # fmt: skip
MESSY = st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=16).map("".join))
PLAIN = st.sampled_from(
    ["- look first\n", "Word by word.\n", "## Tools\n", "```\nx\n```\n", "é🙂\n", "\n", "look at 7. "]
)
PASSAGES = st.lists(PLAIN, min_size=1, max_size=7).map("".join)
SOUND = st.builds(
    lambda head, middle, tail, appendix, momentum: (
        f"{FRONT}# T\n\nThe first line stands once.\n{head}\n"
        f"<!-- APPENDIX_START -->\n{appendix}\n<!-- APPENDIX_END -->\n\n"
        f"{middle}\n\n<!-- MOMENTUM_START -->\n{momentum}\n<!-- MOMENTUM_END -->\n{tail}"
    ),
    *[PASSAGES] * 5,
)
SKILLS = st.one_of(SOUND, SOUND, MESSY)
CONTENTS = st.one_of(PASSAGES, PASSAGES, MESSY)


@st.composite
def skills_with_edits(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    """A skill and edits, most of them of a sound form, with targets cut out of the text at any place."""
    text = draw(SKILLS)
    normal = normalise_newlines(text)

    def target() -> str:
        if normal and draw(st.integers(0, 5)):
            start = draw(st.integers(0, len(normal) - 1))
            return normal[start : start + draw(st.integers(1, 40))]
        return draw(MESSY)

    def edit() -> Edit:
        op, odd = draw(st.sampled_from(EditOp)), draw(st.integers(0, 9)) == 0
        aimed = target() if op is not EditOp.APPEND or odd else ""
        return Edit(op, aimed, draw(CONTENTS) if op is not EditOp.DELETE or odd else "", "why", ("q1",))

    return text, [edit() for _ in range(draw(st.integers(0, 4)))]


@settings(max_examples=400, deadline=None)
@given(skills_with_edits(), st.sampled_from([SKILL_GUARD, PROMPT_GUARD]))
@example((FRONT + "a b <!-- APPENDIX_START -->x<!-- APPENDIX_END -->", [Edit(EditOp.DELETE, "a b ", "")]), SKILL_GUARD)
def test_evo_8_every_result_keeps_the_invariants(case: tuple[str, list[Edit]], guard: object) -> None:
    text, edits = case
    rules = Rules(max_chars=400, guard=PROMPT_GUARD if guard is PROMPT_GUARD else SKILL_GUARD)
    result = apply_edits(text, edits, rules)
    before, after = normalise_newlines(text), normalise_newlines(result.text)

    assert [outcome.edit for outcome in result.outcomes] == edits
    assert all((outcome.status is EditStatus.APPLIED) == (outcome.reason == "") for outcome in result.outcomes)
    if result.status is not CandidateStatus.CANDIDATE:
        assert result.text == text
        assert bool(result.violations) == (result.status is CandidateStatus.REJECTED)
        return
    assert "\r" not in result.text
    assert after != before
    assert any(outcome.status is EditStatus.APPLIED for outcome in result.outcomes)
    assert front_matter_span(after).of(after) == front_matter_span(before).of(before)
    assert [(n, s.of(after)) for n, s in block_spans(after)] == [(n, s.of(before)) for n, s in block_spans(before)]
    assert marker_faults(after) == ()
    assert open_fence(after) is None
    assert len(after) <= 400
    old, new = len(free_body(before).strip()), len(free_body(after).strip())
    assert old == 0 or 0.3 * old <= new <= 2.0 * old
    if rules.guard is PROMPT_GUARD:
        headings = PROMPT_GUARD.frozen_headings
        assert [(t, s.of(after)) for t, s in section_spans(after, headings)] == [
            (t, s.of(before)) for t, s in section_spans(before, headings)
        ]


@settings(max_examples=150, deadline=None)
@given(skills_with_edits())
def test_evo_8_crlf_and_lf_copies_of_a_skill_have_the_same_result(case: tuple[str, list[Edit]]) -> None:
    text, edits = case
    unix = normalise_newlines(text)
    rules = Rules(max_chars=1000)
    one, other = apply_edits(unix, edits, rules), apply_edits(unix.replace("\n", "\r\n"), edits, rules)
    assert one.status is other.status
    assert [outcome.status for outcome in one.outcomes] == [outcome.status for outcome in other.outcomes]
    assert normalise_newlines(other.text) == one.text


def test_qua_13_a_huge_skill_with_a_hostile_target_ends_soon() -> None:
    text = FRONT + "a" * 500_000
    result = apply_edits(text, [Edit(EditOp.REPLACE, "a" * 1000, "b"), Edit(EditOp.APPEND, "", "c")], Rules(1_000_000))
    assert "100 or more times" in result.outcomes[0].reason
    assert result.status is CandidateStatus.CANDIDATE
