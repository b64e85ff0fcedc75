"""TRN-15: the Video-MME experiment can be rehearsed with a made-up set in all of its forms."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from services.questions import Question
from services.runtime.bundled import bundled_path
from services.trainer.adapters.question_files import read_questions
from services.trainer.adapters.tree_folders import TreeFolders
from services.trainer.domain.importing.gathering import Reading
from services.trainer.use_cases.import_questions import import_questions
from services.trainer.use_cases.import_trees import import_trees
from tests.fakes.in_memory_library import InMemoryLibrary

sys.path.insert(0, str(bundled_path("examples") / "videomme"))

from rehearsal import ASKS, make_rehearsal, write_rehearsal


async def test_trn_15_trn_1_every_form_gives_the_same_questions_about_imported_trees(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    files = write_rehearsal(make_rehearsal(videos=12), tmp_path)
    library = InMemoryLibrary()
    assert (await import_trees(library, TreeFolders(tmp_path / "trees"))).video_count == 12
    found: dict[str, list[Question]] = {}
    for file in files:
        await import_questions(
            library, lambda reading, file=file: read_questions(file, reading), file.name, durations=["long"]
        )
        found[file.name] = library.datasets[file.name]
    assert list(found) == ["nested.json", "flat.json", "flat.parquet"]
    assert found["nested.json"] == found["flat.json"] == found["flat.parquet"]
    assert len(found["flat.json"]) == 36
    assert {question.video_id for question in found["flat.json"]} == set(library.trees)


def test_trn_15_the_set_has_the_size_and_the_irregularities_of_the_real_one(tmp_path: Path) -> None:
    rehearsal = make_rehearsal()
    (tmp_path / "nested.json").write_text(json.dumps(rehearsal.nested), encoding="utf-8")
    parsed = read_questions(tmp_path / "nested.json", Reading(known_videos=rehearsal.trees))
    assert parsed.faults == ()
    assert len(parsed.questions) == 900
    types = Counter(question.task_type for question in parsed.questions)
    assert set(types) == set(ASKS)
    assert len(types) == 12
    assert types.most_common()[-1][1] < 20 < types.most_common(1)[0][1]
    texts = Counter(question.text for question in parsed.questions)
    assert texts["What is this video mainly about?"] > 28
    assert any("\n" in text for text in texts)
    options = [question.options for question in parsed.questions]
    assert any(len(set(each)) < 4 for each in options)
    assert any(not option.isascii() for each in options for option in each)
    assert any(not option.endswith(".") for each in options for option in each)
    assert set(Counter(question.answer for question in parsed.questions)) == set("ABCD")


def test_trn_15_the_same_seed_makes_the_same_set() -> None:
    one, again, other = make_rehearsal(3), make_rehearsal(3), make_rehearsal(3, seed=1)
    assert (one.nested, one.trees) == (again.nested, again.trees)
    assert one.nested != other.nested
    assert make_rehearsal(2).nested == one.nested[:2]
