"""EVO-12 on the shipped prompts: what programs read of them stays unchanged to the byte, whatever is edited."""

import pytest

from services.evolver.domain.apply import apply_edits
from services.evolver.domain.edits import Candidate, CandidateStatus, Edit, EditOp
from services.evolver.domain.guard import PROMPT_GUARD
from services.evolver.domain.validate import Rules
from services.runtime.bundled import bundled_path
from services.skills import front_matter_span, section_spans
from services.templates import parse_template, read_folder, template_name

PROMPTS = read_folder(bundled_path("prompts"), ("agent", "tools"))
EVOLVABLE = ("agent.system.md", "agent.direct.md", "tools.extract.md", "tools.observe.md", "tools.verify.md")
FROZEN = ("## Output format", "## Tools", "## Tree structure")
RULES = Rules(24_000, PROMPT_GUARD)


def edited(name: str, edit: Edit) -> Candidate:
    return apply_edits(PROMPTS[name], [edit], RULES)


def body_lines(name: str) -> list[str]:
    """The lines of the body that an edit can name: those that stand there once."""
    text = PROMPTS[name]
    lines = text[front_matter_span(text).end :].splitlines()
    return [line for line in lines if line.strip() and text.count(line) == 1]


def frozen_parts(text: str) -> list[str]:
    return [span.of(text) for _, span in section_spans(text, FROZEN)]


def test_the_system_prompt_has_all_three_frozen_sections() -> None:
    assert [title for title, _ in section_spans(PROMPTS["agent.system.md"], FROZEN)] == list(FROZEN)


@pytest.mark.parametrize("name", EVOLVABLE)
@pytest.mark.parametrize("op", [EditOp.REPLACE, EditOp.INSERT_AFTER, EditOp.DELETE])
def test_evo_12_an_edit_of_any_line_leaves_sections_gaps_and_front_matter_or_is_refused(name: str, op: EditOp) -> None:
    before = PROMPTS[name]
    template = parse_template(template_name(name), before)
    accepted = 0
    for line in body_lines(name):
        after = edited(name, Edit(op, line, "" if op is EditOp.DELETE else "Say which node you mean.")).text
        accepted += after != before
        assert frozen_parts(after) == frozen_parts(before)
        assert front_matter_span(after).of(after) == front_matter_span(before).of(before)
        remade = parse_template(template_name(name), after)
        assert (remade.placeholders, remade.output_schema) == (template.placeholders, template.output_schema)
    assert accepted > 0, "something of each prompt can be edited"


@pytest.mark.parametrize("name", EVOLVABLE)
def test_evo_12_a_prompt_that_would_lose_a_gap_is_refused(name: str) -> None:
    gaps = parse_template(template_name(name), PROMPTS[name]).placeholders
    for gap in gaps:
        for edit in (
            Edit(EditOp.DELETE, f"{{{{{gap}}}}}", ""),
            Edit(EditOp.REPLACE, f"{{{{{gap}}}}}", "none"),
            Edit(EditOp.REPLACE, f"<{gap}>\n{{{{{gap}}}}}", f"{{{{{gap}}}}}"),
            Edit(EditOp.APPEND, "", f"Once more: {{{{{gap}}}}}"),
        ):
            result = edited(name, edit)
            assert (result.status, result.text) == (CandidateStatus.SKIPPED, PROMPTS[name])


def test_evo_12_a_second_section_of_a_frozen_name_is_refused() -> None:
    content = "## Tools\n\n- `fly`: flies."
    result = edited("agent.system.md", Edit(EditOp.APPEND, "", content))
    assert (result.status, result.text) == (CandidateStatus.SKIPPED, PROMPTS["agent.system.md"])
