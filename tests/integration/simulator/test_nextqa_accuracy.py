"""The product's own agent with the simulated model on real questions and captions (SIM-1)."""

import asyncio
import random
from collections.abc import Collection
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


def drawn(
    folder: Path, each_type: int = EACH_TYPE, task_types: Collection[str] = TASK_TYPES.values()
) -> tuple[list[Question], dict[str, VideoTree]]:
    """So many questions of each of the types, and the trees of their videos."""
    with open_captions(folder / "nextqa_allcaps_1fps.zip") as captions:
        reading = Reading(known_videos=captions.video_ids())
        questions = parse_nextqa_csv((folder / "nextqa_val.csv").read_bytes(), reading).questions
        rng = random.Random(1)
        chosen = [
            question
            for task_type in sorted(task_types)
            for question in rng.sample([one for one in questions if one.task_type == task_type], each_type)
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


@pytest.mark.slow
def test_sim_1_helpful_advice_wins_more_than_it_loses_on_real_captions(public_data: Path) -> None:
    everything, trees = drawn(public_data / "nextqa", each_type=200, task_types=["Descriptive Other", "Temporal Next"])
    knowledge, library = load_knowledge(NEXTQA / "world.toml"), FolderLibrary(None, trees)
    helpful = next(one for one in knowledge.world.evolve.proposals if one.quality == "helpful")

    def right(skills: dict[str, str]) -> list[bool]:
        records = asyncio.run(answer_all(everything, knowledge, library, skills, max_steps=12))
        return [record.correct for record in records]

    advised = {name: with_advice(text, helpful.text) for name, text in SKILLS.items()}
    pairs = list(zip(right(SKILLS), right(advised), strict=True))
    wins, losses = pairs.count((False, True)), pairs.count((True, False))
    assert wins > 1.6 * losses
    assert wins - losses > 0.05 * len(pairs)
