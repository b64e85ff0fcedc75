from pathlib import Path

import pytest

from services.templates import (
    MissingTemplatesError,
    RenderError,
    TemplateFormatError,
    TemplateSet,
    parse_template,
    read_folder,
)

HEAD = "---\nname: agent.x\nplaceholders: [question]\noutput: text\n---\n"
JSON_HEAD = (
    "---\nname: agent.x\nplaceholders: []\noutput:\n  type: object\n  required: [answer]\n"
    "  properties: {answer: {type: string, maxLength: 3}}\n---\nask\n"
)


def test_a_template_renders_its_values_once() -> None:
    template = parse_template("agent.x", HEAD + "<question>\n{{question}}\n</question>\n")
    assert template.render(question="{{question}} \\1") == "<question>\n{{question}} \\1\n</question>"


def test_missing_and_extra_values_are_both_named() -> None:
    template = parse_template("agent.x", HEAD + "{{question}}")
    with pytest.raises(RenderError, match=r"missing values \['question'\], unknown values \['other'\]"):
        template.render(other="x")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("no front matter", "no front matter"),
        (HEAD + "no gap", "declared and not used"),
        (HEAD + "{{question}} {{more}}", "used and not declared"),
        (HEAD.replace("agent.x", "agent.y") + "{{question}}", "says name 'agent.y'"),
        (HEAD.replace("output: text", "output: json") + "{{question}}", "output must be"),
        (HEAD.replace("output: text", "output: {type: 3}") + "{{question}}", "no JSON schema"),
        (HEAD.replace("output: text", "extra: 1") + "{{question}}", "output is missing"),
        (HEAD.replace("[question]", "question") + "{{question}}", "must be a list"),
        (HEAD.replace("text", "2020-13-01") + "{{question}}", "front matter is not YAML: month"),
        (HEAD.replace("text", "!!bool x") + "{{question}}", "front matter is not YAML"),
    ],
)
def test_a_malformed_template_says_why(text: str, fault: str) -> None:
    with pytest.raises(TemplateFormatError, match=fault.replace("{", r"\{")):
        parse_template("agent.x", text)


def test_evo_1_all_missing_and_empty_templates_are_named_at_once() -> None:
    files = {"agent.a.md": HEAD, "agent.b.md": "  \n", "agent.x.md": HEAD + "{{question}}"}
    with pytest.raises(MissingTemplatesError) as caught:
        TemplateSet.load(files, ["agent.x", "agent.c", "agent.a", "agent.b"])
    assert caught.value.names == ("agent.a", "agent.b", "agent.c")


def test_a_set_gives_the_required_templates() -> None:
    loaded = TemplateSet.load({"agent.x.md": HEAD + "{{question}}"}, ["agent.x"])
    assert loaded["agent.x"].output_schema is None


def test_answers_are_checked_against_the_declared_schema() -> None:
    template = parse_template("agent.x", JSON_HEAD)
    assert template.answer_faults({"answer": "B"}) == ()
    assert template.answer_faults({"answer": "long text"})[0].startswith("$.answer:")
    assert "'answer' is a required property" in template.answer_faults({})[0]


def test_a_folder_is_read_under_flat_names(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "x.md").write_text("text")
    assert read_folder(tmp_path, ["agent", "tools"]) == {"agent.x.md": "text"}
