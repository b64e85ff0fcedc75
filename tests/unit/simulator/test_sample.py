"""The bundled sample (TRN-1, TRN-5): it is fresh, sound, and its answers follow from its trees."""

import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Iterator
from types import ModuleType

import pytest

from services.questions import Question, parse_question_lines
from services.simulator.domain.words import stems
from services.skills import MARKERS, parse_skill, skill_file, slug
from services.video_tree import VideoTree, parse_tree
from tests.builders.simulated_world import SAMPLE, sample_skills

QUESTIONS = parse_question_lines((SAMPLE / "questions.jsonl").read_bytes()).questions
TREES = {path.parent.name: parse_tree(path.read_bytes()) for path in sorted(SAMPLE.glob("trees/*/tree.json"))}


@pytest.fixture(scope="module")
def generator() -> Iterator[ModuleType]:
    sys.path.insert(0, str(SAMPLE))
    spec = importlib.util.spec_from_file_location("sample_generate", SAMPLE / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(SAMPLE))


def of_type(task_type: str, pattern: str = "") -> list[Question]:
    return [one for one in QUESTIONS if one.task_type == task_type and re.search(pattern, one.text)]


def gold(question: Question) -> str:
    return question.options["ABCD".index(question.answer)].rstrip(".").lower()


def is_told(sentence: str, verb: str, rest: str) -> bool:
    return f" {verb[:2]}" in sentence and rest in sentence


def event_texts(tree: VideoTree) -> list[str]:
    return [node.text for node in tree.at_level(2)]


def test_trn_1_the_committed_sample_is_what_the_generator_makes(generator: ModuleType) -> None:
    assert generator.stale_files(generator.sample_files()) == []


def test_another_seed_makes_another_sample(generator: ModuleType) -> None:
    assert generator.sample_files(1)["questions.jsonl"] != (SAMPLE / "questions.jsonl").read_bytes()


def test_trn_1_the_sample_has_36_videos_and_432_questions_of_six_types() -> None:
    assert len(TREES) == 36
    assert parse_question_lines((SAMPLE / "questions.jsonl").read_bytes(), set(TREES)).faults == ()
    counts = Counter(question.task_type for question in QUESTIONS)
    assert counts == dict.fromkeys(counts, 72)
    assert len(counts) == 6


def test_right_answers_are_spread_over_the_letters() -> None:
    counts = Counter(question.answer for question in QUESTIONS)
    assert min(counts[letter] for letter in "ABCD") > 432 / 4 * 0.75


def test_options_differ() -> None:
    assert all(len(set(question.options)) == len(question.options) for question in QUESTIONS)


def test_counts_are_the_number_of_events() -> None:
    for question in of_type("Counting Problem"):
        action = question.text.removesuffix("?").split(" ", 6)[-1]
        rest = action.split(" ", 1)[1]
        assert sum(rest in text for text in event_texts(TREES[question.video_id])) == int(gold(question))


@pytest.mark.parametrize(("side", "step"), [("after", 1), ("before", -1)])
def test_what_happens_next_to_an_event_is_its_neighbour(side: str, step: int) -> None:
    found = of_type("Temporal Perception", f"right {side}")
    assert found
    for question in found:
        action = re.sub(rf"^.* right {side} (she|he) ", "", question.text).removesuffix("?")
        texts = event_texts(TREES[question.video_id])
        (index,) = [i for i, text in enumerate(texts) if text.split(".")[0].find(f" {action}") > 0]
        assert gold(question) in texts[index + step].lower()


def test_places_stand_in_the_events_own_sentence() -> None:
    for question in of_type("Spatial Perception"):
        verb, rest = question.text.removesuffix("?").split(" ", 4)[-1].split(" ", 1)
        (sentence,) = [
            text.split(".")[0]
            for text in event_texts(TREES[question.video_id])
            if is_told(text.split(".")[0], verb, rest)
        ]
        assert gold(question) in sentence.lower()


def test_tools_are_used_or_not_as_asked() -> None:
    for question in of_type("Object Recognition"):
        text = " ".join(event_texts(TREES[question.video_id]))
        used = [
            option.rstrip(".").lower() for option in question.options if f"with {option.rstrip('.').lower()} " in text
        ]
        wanted = [gold(question)]
        assert used == wanted if " not " not in question.text else wanted[0] not in used and len(used) == 3


def test_only_the_right_reason_is_told() -> None:
    for question in of_type("Action Reasoning"):
        told = [stems(node.text) for node in TREES[question.video_id].at_level(2)]
        found = [option for option in question.options if any(stems(option) <= text for text in told)]
        assert found == [question.options["ABCD".index(question.answer)]]


def test_trn_5_every_type_has_a_v1_skill_with_front_matter_and_both_blocks() -> None:
    skills = sample_skills()
    types = {question.task_type for question in QUESTIONS}
    assert set(skills) == {f"{slug(task_type)}.md" for task_type in types} | {"default-strategy.md"}
    for task_type in types:
        skill = parse_skill(skills[skill_file(task_type, skills)])
        assert skill.task_type == task_type
    assert all(text.count(marker) == 1 for text in skills.values() for marker in MARKERS)
