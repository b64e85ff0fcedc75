"""EVO-8: what an edit may do to a skill, case by case."""

import pytest

from services.evolver.domain.apply import apply_edits
from services.evolver.domain.edits import Candidate, CandidateStatus, Edit, EditOp, EditStatus
from services.evolver.domain.guard import PROMPT_GUARD
from services.evolver.domain.leaks import LeakIndex
from services.evolver.domain.validate import Rules

SKILL = """---
name: counting
description: How many.
task_type: Counting
---
# Counting

Open every scene in order. Count each item once.

- Start with the overview.
- Write down each find.

```
view_node
```

Check the total before you answer.

<!-- APPENDIX_START -->
- Count people once.
<!-- APPENDIX_END -->

Middle text.

<!-- MOMENTUM_START -->
- Keep going.
<!-- MOMENTUM_END -->
"""
RULES = Rules(max_chars=5000)


def apply(*edits: Edit, text: str = SKILL, rules: Rules = RULES) -> Candidate:
    return apply_edits(text, edits, rules)


def replace(target: str, content: str) -> Edit:
    return Edit(EditOp.REPLACE, target, content)


def insert(target: str, content: str) -> Edit:
    return Edit(EditOp.INSERT_AFTER, target, content)


def delete(target: str) -> Edit:
    return Edit(EditOp.DELETE, target, "")


def append(content: str) -> Edit:
    return Edit(EditOp.APPEND, "", content)


def reason_of(candidate: Candidate) -> str:
    assert candidate.status is CandidateStatus.SKIPPED
    assert candidate.text == SKILL
    return candidate.outcomes[0].reason


def test_evo_8_replace_changes_the_target_alone() -> None:
    result = apply(replace("Count each item once.", "Count each item when it appears first."))
    assert result.status is CandidateStatus.CANDIDATE
    assert result.text == SKILL.replace("Count each item once.", "Count each item when it appears first.")


def test_evo_8_insert_after_puts_the_content_on_its_own_lines_after_the_targets_line() -> None:
    result = apply(insert("Start with", "- Then the events.\n"))
    assert "- Start with the overview.\n- Then the events.\n- Write down" in result.text


def test_evo_8_insert_after_a_target_that_ends_in_a_newline_stays_next_to_it() -> None:
    result = apply(insert("- Start with the overview.\n", "- Then the events."))
    assert "- Start with the overview.\n- Then the events.\n- Write down" in result.text


def test_evo_8_delete_removes_the_target_alone() -> None:
    assert apply(delete("- Write down each find.\n")).text == SKILL.replace("- Write down each find.\n", "")


def test_evo_8_append_goes_to_the_end_of_the_free_text_before_closing_blocks() -> None:
    result = apply(append("New rule for totals."))
    assert "Middle text.\n\nNew rule for totals.\n\n<!-- MOMENTUM_START -->" in result.text


def test_evo_8_append_to_a_text_without_blocks_goes_to_its_end() -> None:
    result = apply(append("- third rule"), text="Some rules follow here.\n\n- first rule\n- second rule\n")
    assert result.text == "Some rules follow here.\n\n- first rule\n- second rule\n- third rule\n"


@pytest.mark.parametrize(("target", "count"), [("no such text", 0), ("scene", 1), ("the ", 2)])
def test_evo_8_a_target_must_occur_exactly_once_and_the_count_is_told(target: str, count: int) -> None:
    result = apply(replace(target, "something else"))
    expected = "" if count == 1 else f"occurs {count} times"
    assert expected in result.outcomes[0].reason
    assert (result.text == SKILL) is (count != 1)


def test_evo_8_overlapping_occurrences_count() -> None:
    text = "A text with aaa in it, long enough."
    assert "occurs 2 times" in apply(replace("aa", "b"), text=text).outcomes[0].reason


def test_evo_8_a_target_in_the_front_matter_is_no_occurrence() -> None:
    assert "occurs 0 times" in reason_of(apply(replace("name: counting", "name: other")))


def test_evo_8_a_delete_that_begins_before_a_block_and_reaches_into_it_is_refused() -> None:
    target = "Middle text.\n\n<!-- MOMENTUM_START -->\n- Keep"
    assert "marker" in reason_of(apply(delete(target)))


@pytest.mark.parametrize(
    "edit", [replace("- Count people once.", "x"), delete("Keep going"), insert("people once", "- x")]
)
def test_evo_8_nothing_happens_inside_a_block(edit: Edit) -> None:
    assert "protected" in reason_of(apply(edit))


def test_evo_8_an_insertion_point_on_a_line_that_ends_inside_a_block_is_refused() -> None:
    text = "Enough text. Here <!-- APPENDIX_START -->\n- x\n<!-- APPENDIX_END -->\n"
    assert "protected" in apply(insert("Here", "more"), text=text).outcomes[0].reason


@pytest.mark.parametrize(
    "marker", ["<!-- APPENDIX_START -->", "<!-- MOMENTUM_END -->", "<!--MOMENTUM_START-->", "<!-- appendix_end -->"]
)
def test_evo_8_markers_in_content_or_target_are_refused(marker: str) -> None:
    assert "marker" in reason_of(apply(append(f"x {marker} y")))
    assert "marker" in reason_of(apply(delete(marker)))


@pytest.mark.parametrize("target", ["", "  \n"])
def test_evo_8_an_empty_target_is_refused(target: str) -> None:
    assert "target is empty" in reason_of(apply(replace(target, "x")))


def test_evo_8_nothing_is_inserted_inside_a_code_fence() -> None:
    assert "code fence" in reason_of(apply(insert("view_node", "other_node")))
    assert apply(insert("view_node\n```", "After the fence.")).status is CandidateStatus.CANDIDATE


def test_evo_8_an_append_into_an_open_fence_is_refused() -> None:
    assert "code fence" in apply(append("x"), text="Text.\n```\ncode\n").outcomes[0].reason


def test_evo_8_an_edit_that_leaves_a_fence_open_rejects_the_candidate() -> None:
    result = apply(append("```\nnever closed"))
    assert result.status is CandidateStatus.REJECTED
    assert result.text == SKILL
    assert {violation.rule for violation in result.violations} == {"fences"}
    assert result.outcomes[0].status is EditStatus.REFUSED


def test_evo_8_two_edits_that_make_code_of_what_stands_between_them_reject_the_candidate() -> None:
    result = apply(insert("Start with", "```"), insert("Check the total", "```"))
    assert (result.status, result.text) == (CandidateStatus.REJECTED, SKILL)
    assert [violation.rule for violation in result.violations] == ["fences", "fences"]


@pytest.mark.parametrize(
    "edit",
    [
        delete("```\n\nCheck the total"),
        replace("find.\n\n```\nview", "find.\n\nview"),
        replace("view_node", "a\n```\nb\n```\nc"),
    ],
)
def test_evo_8_a_fence_is_not_cut(edit: Edit) -> None:
    assert "cuts into a code fence" in reason_of(apply(edit))


def test_evo_8_what_stands_in_a_fence_can_be_corrected_and_a_whole_fence_removed() -> None:
    assert "```\nview_node(id)\n```" in apply(replace("view_node", "view_node(id)")).text
    assert apply(delete("```\nview_node\n```\n")).text == SKILL.replace("```\nview_node\n```\n", "")


def test_evo_8_crlf_matches_after_normalisation() -> None:
    text = SKILL.replace("\n", "\r\n")
    result = apply(replace("overview.\r\n- Write", "overview.\n- Note"), text=text)
    assert result.text == SKILL.replace("- Write", "- Note")


def test_evo_8_a_refused_candidate_gives_back_the_very_text_that_came_in() -> None:
    text = SKILL.replace("\n", "\r\n")
    assert apply(replace("nothing here", "x"), text=text).text == text


def test_evo_8_later_edits_see_what_earlier_ones_left() -> None:
    result = apply(replace("Start with the overview.", "Begin at the top."), insert("Begin at the top.", "- Go down."))
    assert [outcome.status for outcome in result.outcomes] == [EditStatus.APPLIED, EditStatus.APPLIED]
    assert "- Begin at the top.\n- Go down.\n" in result.text


def test_evo_8_one_refused_edit_does_not_stop_the_others() -> None:
    result = apply(replace("missing", "x"), replace("Middle text.", "Text in the middle."))
    assert [outcome.status for outcome in result.outcomes] == [EditStatus.REFUSED, EditStatus.APPLIED]


def test_evo_8_edits_that_undo_each_other_are_skipped() -> None:
    assert apply(replace("Middle", "Central"), replace("Central", "Middle")).status is CandidateStatus.SKIPPED


def test_evo_8_two_halves_of_a_marker_never_meet() -> None:
    text = SKILL.replace("Middle text.", "Middle <!-- APPENDIX_")
    result = apply(replace("Middle <!-- APPENDIX_", "Middle <!-- APPENDIX_START"), insert("Middle", "x -->"), text=text)
    joined = apply(replace("PENDIX_\n", "PENDIX_START -->\n"), text=text)
    assert result.text.count("APPENDIX_START -->") == 1
    assert joined.text == text


def test_evo_8_a_body_can_not_be_turned_into_front_matter() -> None:
    text = "First line of text.\nname: x\n---\nThe rest of the text.\n"
    assert apply(replace("First line of text.", "---"), text=text).text == text


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (append("word " * 400), "length"),
        (append("Middle text."), "duplicates"),
        (append("- start with  the overview."), "duplicates"),
    ],
)
def test_evo_8_the_whole_file_is_validated(edit: Edit, rule: str) -> None:
    result = apply(edit)
    assert (result.status, result.text) == (CandidateStatus.REJECTED, SKILL)
    assert rule in {violation.rule for violation in result.violations}


def test_evo_8_a_body_cut_below_a_third_is_rejected() -> None:
    body = SKILL[SKILL.index("# Counting") : SKILL.index("Check the total")]
    result = apply(delete(body))
    assert {violation.rule for violation in result.violations} == {"length"}


def test_evo_8_the_file_stays_under_its_limit() -> None:
    result = apply(append("A new rule."), rules=Rules(max_chars=len(SKILL) + 5))
    assert [violation.rule for violation in result.violations] == ["max_chars"]


QUESTION = "What does the man in the red coat do after he drops the vase on the floor?"


def test_evo_8_eight_words_of_a_question_are_refused_seven_are_not() -> None:
    rules = Rules(max_chars=5000, leaks=LeakIndex.of([(QUESTION, "He runs away")]))
    words = QUESTION.split()
    assert "leak" in reason_of(apply(append("When asked: " + " ".join(words[2:10]).upper()), rules=rules))
    assert apply(append("When asked: " + " ".join(words[2:9])), rules=rules).status is CandidateStatus.CANDIDATE


def test_evo_8_a_short_question_is_refused_with_its_answer_only() -> None:
    rules = Rules(max_chars=5000, leaks=LeakIndex.of([("Why did he run?", "The dog")]))
    assert "leak" in reason_of(apply(append("Why did he run: the dog!"), rules=rules))
    assert apply(append("Ask: why did he run?"), rules=rules).status is CandidateStatus.CANDIDATE


def test_evo_8_a_question_of_two_words_leaks_only_next_to_its_answer() -> None:
    rules = Rules(max_chars=5000, leaks=LeakIndex.of([("How many?", "Two")]))
    assert apply(append("Ask how many there are, then look at two scenes."), rules=rules).violations == ()
    assert "leak" in reason_of(apply(append("How many: two."), rules=rules))


def test_evo_8_a_text_without_spaces_leaks_by_eight_characters() -> None:
    rules = Rules(max_chars=5000, leaks=LeakIndex.of([("为什么男人在晚上离开房子？", "他迟到了")]))
    assert "leak" in reason_of(apply(append("注意:男人在晚上离开房子的原因"), rules=rules))
    assert apply(append("注意男人在晚上的原因"), rules=rules).status is CandidateStatus.CANDIDATE


def test_evo_8_a_question_split_over_two_edits_rejects_the_candidate() -> None:
    rules = Rules(max_chars=5000, leaks=LeakIndex.of([(QUESTION, "He runs away")]))
    words = QUESTION.split()
    result = apply(
        append("The " + " ".join(words[2:7])), insert(" ".join(words[2:7]), " ".join(words[7:12])), rules=rules
    )
    assert [violation.rule for violation in result.violations] == ["leak"]


def test_evo_8_unstorable_characters_are_refused() -> None:
    assert "lone surrogate" in reason_of(apply(append("x \ud800 y")))
    assert "NUL" in reason_of(apply(append("x \0 y")))


PROMPT = """---
name: agent.system
---
Intro text that is long enough to be edited.

## Tools

- view_node

## Habits

Be brief and look twice.

## Output format

JSON.
"""


@pytest.mark.parametrize(
    "edit",
    [
        replace("- view_node", "- other"),
        insert("- view_node", "- other"),
        delete("## Tools\n"),
        replace("## Habits\n", "More tools\n"),
        replace("edited.\n\n## Tools", "edited."),
        replace("twice.\n\n", "twice."),
    ],
)
def test_evo_12_frozen_sections_stay_unchanged(edit: Edit) -> None:
    result = apply(edit, text=PROMPT, rules=Rules(5000, PROMPT_GUARD))
    assert result.text == PROMPT
    assert "protected" in result.outcomes[0].reason


def test_evo_12_the_rest_of_a_prompt_can_be_edited() -> None:
    rules = Rules(5000, PROMPT_GUARD)
    result = apply(replace("look twice", "look three times"), append("Never guess."), text=PROMPT, rules=rules)
    assert result.status is CandidateStatus.CANDIDATE
    assert "look three times.\n\nNever guess.\n\n## Output format\n\nJSON.\n" in result.text
