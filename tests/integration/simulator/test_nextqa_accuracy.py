"""The product's own agent with the simulated model on real questions and captions (SIM-1)."""

import asyncio
import random
from pathlib import Path

import pytest

from services.questions import Question
from services.runtime.bundled import bundled_path
from services.simulator.adapters.world_file import load_knowledge
from services.skills import parse_skill, slug
from services.trainer.adapters.caption_archive import open_captions
from services.trainer.domain.importing.captions_tree import captions_tree, parse_captions
from services.trainer.domain.importing.gathering import Reading
from services.trainer.domain.importing.nextqa import TASK_TYPES, parse_nextqa_csv
from services.video_tree import VideoTree
from tests.builders.simulated_world import with_advice
from tests.fakes.simulated_answering import FolderLibrary, answer_all

NEXTQA = bundled_path("examples") / "nextqa"
SKILLS = {path.name: path.read_text(encoding="utf-8") for path in sorted((NEXTQA / "skills").glob("*.md"))}
EACH_TYPE = 50


def drawn(folder: Path) -> tuple[list[Question], dict[str, VideoTree]]:
    """Fifty questions of each type, and the trees of their videos."""
    with open_captions(folder / "nextqa_allcaps_1fps.zip") as captions:
        reading = Reading(known_videos=captions.video_ids())
        questions = parse_nextqa_csv((folder / "nextqa_val.csv").read_bytes(), reading).questions
        rng = random.Random(1)
        chosen = [
            question
            for task_type in sorted(TASK_TYPES.values())
            for question in rng.sample([one for one in questions if one.task_type == task_type], EACH_TYPE)
        ]
        videos = sorted({question.video_id for question in chosen})
        return chosen, {video: captions_tree(video, parse_captions(captions.read(video))) for video in videos}


def test_trn_5_every_nextqa_type_has_a_v1_skill() -> None:
    assert set(SKILLS) == {f"{slug(name)}.md" for name in TASK_TYPES.values()} | {"default-strategy.md"}
    assert {parse_skill(text).task_type for text in SKILLS.values()} == {*TASK_TYPES.values(), "any"}


@pytest.mark.slow
def test_sim_1_the_agent_beats_chance_on_real_captions_and_stopping_early_costs(public_data: Path) -> None:
    questions, trees = drawn(public_data / "nextqa")
    knowledge = load_knowledge(NEXTQA / "world.toml")
    library = FolderLibrary(None, trees)

    def share(skills: dict[str, str]) -> float:
        records = asyncio.run(answer_all(questions, knowledge, library, skills, max_steps=12))
        return sum(record.correct for record in records) / len(records)

    harmful = next(one for one in knowledge.world.evolve.proposals if one.quality == "harmful")
    plain = share(SKILLS)
    assert plain > 0.38
    assert share({name: with_advice(text, harmful.text) for name, text in SKILLS.items()}) < plain - 0.02
