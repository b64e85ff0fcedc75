"""EVO-1: every template, its gaps, its answer, and the code that reads it."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from services.evolver.domain.answers import read_object
from services.evolver.domain.case_pack import CasePack
from services.evolver.domain.momentum import momentum_faults
from services.evolver.domain.proposal import read_body, read_edits, read_order
from services.evolver.domain.reminders import new_reminders
from services.evolver.domain.stages import JUDGE_STAGES, Bounds
from services.evolver.domain.targets import TargetKind, UpdateMode, template_values
from services.evolver.templates import FOLDERS, REQUIRED, engine_files, load_templates
from services.runtime.config import ConfigError
from tests.builders.cases import SKILL, case, submit, view

FILES = engine_files(None)
TEMPLATES = load_templates(FILES)
PACK = CasePack("Action Reasoning", "a.md", (), (), {}, ())
CASE = case(view(0, "e1"), submit(1))


def _example(name: str) -> Mapping[str, Any]:
    """The example of an answer that the template itself gives, which is the last thing in it."""
    text = TEMPLATES[name].text
    return read_object(text[text.rindex("Answer with one JSON object") :], "stop")


def _stage(name: str) -> Callable[[Mapping[str, Any]], object]:
    stage = next(stage for stage in JUDGE_STAGES if stage.template == name)
    filled = {"evidence": {"needed_nodes": ["v_e1"]}, "tool_output": {"steps": [_verdict(0)]}}.get(stage.name, {})
    return lambda answer: stage.read(CASE, {**answer, **filled})


def _verdict(step: int) -> dict[str, Any]:
    return {"step": step, "verdict": "faithful", "detail": ""}


READERS: dict[str, Callable[[Mapping[str, Any]], object]] = {
    **{stage.template: _stage(stage.template) for stage in JUDGE_STAGES},
    "diagnose.score": lambda answer: (float(answer["quality"]), answer["why"]),
    **{kind.value: lambda answer: read_edits(answer, ["..."]) for kind in TargetKind},
    "evolve.rewrite": lambda answer: read_body(answer, ["..."]),
    "evolve.rank": lambda answer: read_order(answer, 3),
    "evolve.consolidate": lambda answer: new_reminders([], answer["reminders"]),
    "slow.momentum": lambda answer: momentum_faults(answer["momentum"], 1000),
}


def test_evo_1_every_file_is_required_and_every_required_template_is_there() -> None:
    assert {name.removesuffix(".md") for name in FILES} == set(REQUIRED)
    assert set(READERS) == set(REQUIRED) - {"evolve.retry"}


@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_evo_1_each_gap_stands_alone_between_tags_of_its_name(name: str) -> None:
    template = TEMPLATES[name]
    for gap in template.placeholders:
        assert template.text.count(f"<{gap}>\n{{{{{gap}}}}}\n</{gap}>") == 1
    assert template.text.startswith(f"<task>{name}</task>\n")


@pytest.mark.parametrize("name", sorted(READERS))
def test_evo_1_the_example_of_an_answer_fits_the_schema_and_is_read(name: str) -> None:
    answer = _example(name)
    assert TEMPLATES[name].answer_faults(answer) == ()
    READERS[name](answer)


@pytest.mark.parametrize("name", sorted(READERS))
def test_evo_1_every_field_of_the_schema_is_required_and_in_the_example(name: str) -> None:
    schema = TEMPLATES[name].output_schema
    assert schema is not None
    assert set(schema["required"]) == set(schema["properties"]) == set(_example(name))


class _Watched(dict[str, Any]):
    """An answer that remembers which of its fields were read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)


@pytest.mark.parametrize("name", sorted(set(READERS) - {stage.template for stage in JUDGE_STAGES}))
def test_evo_1_no_field_without_a_reader(name: str) -> None:
    answer = _Watched(_example(name))
    READERS[name](answer)
    assert answer.read == set(answer)


def test_evo_1_no_field_of_a_stage_without_a_reader() -> None:
    kept = {stage.name: stage.read(CASE, _stage_answer(stage.name)) for stage in JUDGE_STAGES}
    own = {"missed_nodes", "missed"}  # which of them were not seen, and what they say: the report shows that
    assert kept["evidence"].details.keys() == {"needed_nodes", "skill_directs_there", "why", *own}
    assert kept["tool_output"].details.keys() == {"cause_step", "why"}
    assert kept["tool_output"].spans == {0: {"verdict": "incomplete", "detail": "d"}}
    assert kept["skill"].details.keys() == {"verdict", "quote", "why"}
    assert kept["reasoning"].details.keys() == {"type", "why"}
    assert all(finding.explanation and finding.explanation.reminder == "Do it." for finding in kept.values())


def _stage_answer(stage: str) -> dict[str, Any]:
    own = {
        "evidence": {"needed_nodes": ["v_e2"], "skill_directs_there": True},
        "tool_output": {"steps": [{"step": 0, "verdict": "incomplete", "detail": "d"}], "cause_step": 0},
        "skill": {"verdict": "not_followed", "quote": "Open the event before the action."},
        "reasoning": {"type": "count_wrong"},
    }[stage]
    return {**own, "why": "w", "reminder": "Do it."}


@pytest.mark.parametrize("stage", JUDGE_STAGES, ids=lambda stage: stage.name)
def test_evo_1_a_stage_fills_exactly_its_templates_gaps(stage: Any) -> None:
    values = stage.values(CASE, Bounds())
    assert set(values) == set(TEMPLATES[stage.template].placeholders)
    assert "{{" not in TEMPLATES[stage.template].render(**values)


@pytest.mark.parametrize(
    ("kind", "mode"), [*((kind, UpdateMode.PATCH) for kind in TargetKind), (TargetKind.SKILL, UpdateMode.REWRITE)]
)
def test_evo_1_a_proposal_fills_exactly_its_templates_gaps(kind: TargetKind, mode: UpdateMode) -> None:
    values = template_values(kind, mode, PACK, SKILL, 3, (), 5000)
    name = "evolve.rewrite" if mode is UpdateMode.REWRITE else kind.value
    assert set(values) == set(TEMPLATES[name].placeholders)


def test_evo_1_enumerations_in_the_text_and_the_schema_agree() -> None:
    for name, field in (("diagnose.skill", "verdict"), ("diagnose.reasoning", "type")):
        template = TEMPLATES[name]
        assert template.output_schema is not None
        named = re.findall(r"^- `([a-z_]+)`:", template.text, re.MULTILINE)
        assert named == template.output_schema["properties"][field]["enum"]


def test_evo_1_the_service_refuses_to_start_and_lists_every_missing_name(tmp_path: Path) -> None:
    for name, text in FILES.items():
        folder, file = name.split(".", 1)
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / file).write_text(text)
    (tmp_path / "diagnose" / "skill.md").unlink()
    (tmp_path / "slow" / "momentum.md").write_text("\n")
    with pytest.raises(ConfigError, match=r"diagnose\.skill, slow\.momentum"):
        load_templates(engine_files(tmp_path))
    assert set(FOLDERS) == {path.name for path in tmp_path.iterdir()}
