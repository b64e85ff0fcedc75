"""TRN-5: the ready skills of each example serve its task types and can be edited."""

from pathlib import Path

import pytest

from services.runtime.bundled import bundled_path
from services.skills import BLOCKS, DEFAULT_SKILL_FILE, block_content, marker_faults, parse_skill, slug
from services.trainer.domain.importing.nextqa import TASK_TYPES

VIDEOMME_TYPES = (
    "Object Reasoning",
    "Object Recognition",
    "Information Synopsis",
    "Action Recognition",
    "Action Reasoning",
    "Counting Problem",
    "Attribute Perception",
    "Temporal Reasoning",
    "OCR Problems",
    "Spatial Reasoning",
    "Temporal Perception",
    "Spatial Perception",
)
EXAMPLES = {"nextqa": tuple(TASK_TYPES.values()), "videomme": VIDEOMME_TYPES, "text_mcq": ("Multiple Choice",)}


def skill_files(example: str) -> dict[str, Path]:
    return {path.name: path for path in sorted((bundled_path("examples") / example / "skills").glob("*.md"))}


@pytest.mark.parametrize("example", EXAMPLES)
def test_trn_5_there_is_one_skill_a_type_and_the_default(example: str) -> None:
    expected = {f"{slug(task_type)}.md" for task_type in EXAMPLES[example]} | {DEFAULT_SKILL_FILE}
    assert set(skill_files(example)) == expected


@pytest.mark.parametrize("example", EXAMPLES)
def test_trn_5_each_skill_has_its_front_matter_and_both_protected_blocks(example: str) -> None:
    types = {f"{slug(task_type)}.md": task_type for task_type in EXAMPLES[example]}
    for name, path in skill_files(example).items():
        skill = parse_skill(path.read_text(encoding="utf-8"))
        assert f"{skill.name}.md" == name
        assert name == DEFAULT_SKILL_FILE or skill.task_type == types[name]
        assert not marker_faults(skill.text)
        assert [block_content(skill.text, block) for block in BLOCKS] == ["", ""]
        assert 400 <= len(skill.body) <= 4_000
