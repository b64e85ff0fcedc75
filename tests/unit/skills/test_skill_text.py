import pytest

from services.skills import (
    DEFAULT_SKILL_FILE,
    MARKERS,
    SkillFormatError,
    Span,
    block_content,
    block_spans,
    fence_spans,
    front_matter_span,
    holds_marker,
    marker_faults,
    normalise_newlines,
    open_fence,
    parse_skill,
    protected_spans,
    replace_block,
    section_spans,
    skill_file,
    slug,
    text_sha256,
)

SKILL = """---
name: action-reasoning
description: Why an action happens.
task_type: Action Reasoning
---
# Strategy

Look before the event.

<!-- APPENDIX_START -->
- Read every option.
<!-- APPENDIX_END -->

<!-- MOMENTUM_START -->
<!-- MOMENTUM_END -->
"""


@pytest.mark.parametrize(
    ("task_type", "expected"),
    [
        ("Action Reasoning", "action-reasoning"),
        ("  OCR  Problems ", "ocr-problems"),
        ("A/B_c", "a-b-c"),
        ("Café", "cafe"),
        ("../../etc", "etc"),
    ],
)
def test_slug_is_lower_case_with_hyphens(task_type: str, expected: str) -> None:
    assert slug(task_type) == expected


def test_slug_of_another_script_is_still_a_file_name_and_its_own() -> None:
    assert slug("動作") != slug("推論")
    assert slug("動作").startswith("type-")


def test_a_type_without_its_own_file_is_served_by_the_default_strategy() -> None:
    assert skill_file("Action Reasoning", {"action-reasoning.md"}) == "action-reasoning.md"
    assert skill_file("Counting", {"action-reasoning.md"}) == DEFAULT_SKILL_FILE


def test_newlines_are_normalised_and_the_hash_does_not_see_the_difference() -> None:
    assert normalise_newlines("a\r\nb\rc\n\u2028") == "a\nb\nc\n\u2028"
    assert text_sha256("a\r\nb") == text_sha256("a\nb") != text_sha256("a\nc")


def test_a_skill_is_read_into_front_matter_and_body() -> None:
    skill = parse_skill(SKILL.replace("\n", "\r\n"))
    assert (skill.name, skill.task_type) == ("action-reasoning", "Action Reasoning")
    assert skill.front_matter + skill.body == skill.text == SKILL
    assert skill.appendix == "- Read every option."
    assert skill.momentum == ""
    assert [span.of(SKILL)[:4] for span in skill.protected] == ["---\n", "<!--", "<!--"]


@pytest.mark.parametrize(
    "text", ["", "plain", "---\nname: x\n", "---\n- a\n---\nx", "---\n: : :\n---\n", "---\nname: x\n---\n"]
)
def test_a_file_that_is_no_skill_says_why(text: str) -> None:
    with pytest.raises(SkillFormatError) as caught:
        parse_skill(text)
    assert caught.value.faults


@pytest.mark.parametrize(
    "value",
    ["2020-13-01", "2020-01-01T25:00:00Z", ":".join(["1"] * 200) + ".5", "!!int x", "!!bool x", "!!timestamp x",
     "9" * 5000, "!!float x"],
)  # fmt: skip
def test_qua_13_a_value_that_yaml_cannot_make_is_a_fault_of_the_front_matter(value: str) -> None:
    with pytest.raises(SkillFormatError, match=r"^front matter is not YAML: "):
        parse_skill(f"---\nname: a\ndescription: {value}\n---\ntext\n")


def test_all_missing_front_matter_keys_are_named_at_once() -> None:
    with pytest.raises(SkillFormatError) as caught:
        parse_skill("---\nname: x\n---\nbody")
    assert len(caught.value.faults) == 2


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<!-- APPENDIX_START -->", "1 START and 0 END"),
        ("<!-- APPENDIX_END --><!-- APPENDIX_START -->", "not followed"),
        ("<!-- APPENDIX_START --><!-- APPENDIX_END -->" * 2, "2 pairs"),
        ("<!-- APPENDIX_START --><!-- MOMENTUM_START --><!-- APPENDIX_END --><!-- MOMENTUM_END -->", "not followed"),
        ("<!--APPENDIX_START--><!-- APPENDIX_END -->", "exact form"),
    ],
)
def test_marker_faults_are_found(text: str, fault: str) -> None:
    assert any(fault in found for found in marker_faults(text))


def test_a_sound_skill_has_no_marker_faults() -> None:
    assert marker_faults(SKILL) == ()
    assert all(holds_marker(marker) for marker in MARKERS)
    assert not holds_marker("<!-- a comment -->")


def test_an_unclosed_block_protects_everything_up_to_the_next_marker() -> None:
    text = "a <!-- APPENDIX_START --> b <!-- MOMENTUM_START --> c"
    assert [(name, span.of(text)) for name, span in block_spans(text)] == [
        ("APPENDIX", "<!-- APPENDIX_START --> b "),
        ("MOMENTUM", "<!-- MOMENTUM_START --> c"),
    ]


def test_replacing_a_block_leaves_every_other_byte() -> None:
    changed = replace_block(SKILL, "MOMENTUM", "- new")
    assert block_content(changed, "MOMENTUM") == "- new"
    assert changed.replace("- new\n", "") == SKILL
    assert replace_block(changed, "MOMENTUM", "") == SKILL


def test_a_missing_block_is_added_at_the_end() -> None:
    assert replace_block("text", "APPENDIX", "- x") == "text\n\n<!-- APPENDIX_START -->\n- x\n<!-- APPENDIX_END -->\n"


def test_fences_follow_commonmark() -> None:
    text = "a\n```py\nx ~~~\n```\nb\n~~~~\n```\n~~~\n~~~~\nc"
    assert [span.of(text) for span in fence_spans(text)] == ["```py\nx ~~~\n```", "~~~~\n```\n~~~\n~~~~"]
    assert open_fence(text) is None
    assert open_fence("a\n```\nb") == 2
    assert open_fence("a `` b ``` c") is None


def test_front_matter_needs_both_lines_and_may_follow_a_bom() -> None:
    assert front_matter_span("---\na: 1\n") == Span(0, 0)
    assert front_matter_span("\ufeff---\na: 1\n---\nx").end == 14
    assert protected_spans("plain") == ()


def test_sections_run_to_the_next_heading_of_the_same_level() -> None:
    text = "# A\n## Tools\nx\n### sub\n```\n## Not\n```\n## Other\ny\n"
    assert [(title, span.of(text)) for title, span in section_spans(text, ["## Tools"])] == [
        ("## Tools", "## Tools\nx\n### sub\n```\n## Not\n```\n")
    ]
