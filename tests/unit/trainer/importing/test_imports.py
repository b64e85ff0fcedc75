"""TRN-1: an import is whole or not at all."""

import json
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from services.questions import ParsedQuestions
from services.trainer.adapters.caption_archive import open_captions
from services.trainer.adapters.tree_folders import TreeFolders
from services.trainer.domain.errors import ServiceFailed
from services.trainer.domain.importing.errors import FaultyImport, OtherContent, UnreadableSource
from services.trainer.domain.importing.gathering import Reading
from services.trainer.domain.importing.questions_jsonl import parse_questions_jsonl
from services.trainer.use_cases.import_captions import import_captions
from services.trainer.use_cases.import_nextqa import import_nextqa
from services.trainer.use_cases.import_questions import import_questions
from services.trainer.use_cases.import_trees import import_trees
from services.video_tree import parse_tree
from tests.builders.videos import tree_json
from tests.fakes.in_memory_library import InMemoryLibrary

GOOD = {
    "question_id": "q1",
    "video_id": "v1",
    "task_type": "T",
    "question": "?x",
    "options": ["a", "b"],
    "answer": "A",
}
JPEG = b"\xff\xd8\xff\xe0 a picture \xff\xd9"
HEAD = "video,frame_count,width,height,question,answer,qid,type,a0,a1,a2,a3,a4\n"


def reads(*records: object) -> object:
    content = "\n".join(json.dumps(record) for record in records).encode()

    def read(reading: Reading) -> ParsedQuestions:
        return parse_questions_jsonl(content, reading)

    return read


async def test_trn_1_faults_are_all_listed_and_nothing_is_imported() -> None:
    library = InMemoryLibrary(["v1"])
    bad = [{**GOOD, "question_id": "q2", "answer": "Z"}, {**GOOD, "question_id": "q3", "video_id": "v9"}, GOOD]
    with pytest.raises(FaultyImport) as caught:
        await import_questions(library, reads(GOOD, *bad), "d")  # type: ignore[arg-type]
    assert [fault.place for fault in caught.value.faults] == ["line 2", "line 3", "line 4"]
    assert library.writes == []


async def test_trn_1_skip_bad_imports_the_rest_and_says_what_it_left() -> None:
    library = InMemoryLibrary(["v1"])
    imported = await import_questions(library, reads(GOOD, {**GOOD, "answer": "Z"}), "d", skip_bad=True)  # type: ignore[arg-type]
    assert (imported.question_count, imported.video_count, len(imported.left_out)) == (1, 1, 1)
    assert [question.question_id for question in library.datasets["d"]] == ["q1"]
    with pytest.raises(UnreadableSource, match="no question to import"):
        await import_questions(library, reads({**GOOD, "answer": "Z"}), "e", skip_bad=True)  # type: ignore[arg-type]


async def test_trn_1_a_set_without_a_question_is_refused_with_the_reason() -> None:
    library = InMemoryLibrary(["v1"])
    with pytest.raises(UnreadableSource, match="no question to import: the file is empty"):
        await import_questions(library, reads(), "d")  # type: ignore[arg-type]
    with pytest.raises(UnreadableSource, match="none is about a video of the duration long"):
        await import_questions(library, reads({**GOOD, "duration": "short"}), "d", durations=["long"])  # type: ignore[arg-type]
    assert library.writes == []


async def test_trn_1_what_a_whole_set_lacks_is_refused_with_the_option_that_gives_it() -> None:
    text = {"id": "t1", "question": "?", "options": ["a", "b"], "answer": "B"}
    with pytest.raises(FaultyImport, match=r"video_id is missing; a set without videos is imported with --text-only;"):
        await import_questions(InMemoryLibrary(), reads(text), "d")  # type: ignore[arg-type]
    with pytest.raises(FaultyImport, match=r"task_type is missing; --task-type gives a type"):
        await import_questions(InMemoryLibrary(), reads(text), "d", text_only=True)  # type: ignore[arg-type]


async def test_trn_1_text_only_sets_need_no_videos() -> None:
    library = InMemoryLibrary()
    text = {"id": "t1", "question": "?", "options": ["a", "b"], "answer": "B"}
    await import_questions(library, reads(text), "d", text_only=True, task_type="Science")  # type: ignore[arg-type]
    assert library.datasets["d"][0].task_type == "Science"


def captions_zip(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("all/", "")
        for name, content in files.items():
            archive.writestr(f"all/{name}_cap.json", content)
    return path


async def test_trn_1_nextqa_writes_trees_before_the_questions_that_name_them(tmp_path: Path) -> None:
    path = captions_zip(tmp_path / "c.zip", {"77": '{"0": "A dog."}', "78": '{"0": "A cat."}'})
    library, steps = InMemoryLibrary(), []
    with open_captions(path) as captions:
        imported = await import_nextqa(
            library,
            (HEAD + "77,1,1,1,why,0,1,CW,a,b,c,d,e\n").encode(),
            captions,
            "n",
            advance=lambda done, total: steps.append((done, total)),
        )
    assert library.writes == ["video 77", "questions n"]
    assert (imported.question_count, imported.video_count, steps) == (1, 1, [(1, 1)])


async def test_trn_1_nextqa_lists_faults_of_captions_and_questions_together(tmp_path: Path) -> None:
    (tmp_path / "77_cap.json").write_text('{"0": ""}')
    (tmp_path / "78.json").write_text('{"0": "A cat."}')
    rows = "77,1,1,1,why,0,1,CW,a,b,c,d,e\n78,1,1,1,why,0,1,CW,a,b,c,d,e\n"
    library = InMemoryLibrary()
    with open_captions(tmp_path) as captions:
        with pytest.raises(FaultyImport) as caught:
            await import_nextqa(library, (HEAD + rows).encode(), captions, "n")
        assert [fault.place for fault in caught.value.faults] == ["captions of 77", "line 2"]
        assert caught.value.faults[1].reason == "unknown video '77'; there are no sound captions of it"
        assert library.writes == []
        imported = await import_nextqa(library, (HEAD + rows).encode(), captions, "n", skip_bad=True)
    assert library.writes == ["video 78", "questions n"]
    assert len(imported.left_out) == 2


async def test_trn_1_a_failed_write_ends_the_import_before_the_questions(tmp_path: Path) -> None:
    class Refusing(InMemoryLibrary):
        async def put_video(self, video_id: str, tree_json: bytes, *, force: bool) -> None:
            raise ServiceFailed("store", "ALREADY_EXISTS", "another tree")

    path = captions_zip(tmp_path / "c.zip", {"77": '{"0": "A dog."}'})
    library = Refusing()
    with open_captions(path) as captions, pytest.raises(ServiceFailed, match="another tree"):
        await import_nextqa(library, (HEAD + "77,1,1,1,why,0,1,CW,a,b,c,d,e\n").encode(), captions, "n")
    assert library.datasets == {}


async def test_trn_1_a_part_of_nextqa_is_drawn_by_whole_videos(tmp_path: Path) -> None:
    path = captions_zip(tmp_path / "c.zip", {str(video): '{"0": "A dog."}' for video in range(70, 90)})
    rows = HEAD + "".join(f"{video},1,1,1,why,0,{q},CW,a,b,c,d,e\n" for video in range(70, 90) for q in (1, 2))
    drawn: dict[int, list[str]] = {}
    for count in (5, 8, 99):
        library = InMemoryLibrary()
        with open_captions(path) as captions:
            imported = await import_nextqa(library, rows.encode(), captions, "n", videos=count, draw_seed=3)
        assert (imported.question_count, imported.video_count) == (2 * min(count, 20), min(count, 20))
        drawn[count] = sorted(library.trees)
        assert {question.video_id for question in library.datasets["n"]} == set(drawn[count])
    assert set(drawn[5]) < set(drawn[8]) < set(drawn[99])
    library = InMemoryLibrary()
    with open_captions(path) as captions:
        await import_nextqa(library, rows.encode(), captions, "n", videos=5, draw_seed=4)
    assert sorted(library.trees) != drawn[5]


async def test_trn_1_questions_can_be_drawn_by_video_and_by_unit_where_there_is_none() -> None:
    about = [{**GOOD, "question_id": f"q{n}", "video_id": f"v{n // 2}"} for n in range(10)]
    library = InMemoryLibrary([f"v{n}" for n in range(5)])
    assert (await import_questions(library, reads(*about), "d", videos=2)).question_count == 4  # type: ignore[arg-type]
    text = [{**GOOD, "question_id": f"q{n}", "unit_id": f"u{n // 5}"} for n in range(10)]
    await import_questions(library, reads(*text), "t", text_only=True, videos=1)  # type: ignore[arg-type]
    assert len({question.unit_id for question in library.datasets["t"]}) == 1
    assert len(library.datasets["t"]) == 5


async def test_trn_1_other_content_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """A clash with one of many trees, or with the question set, leaves the library as it was; force replaces."""
    path = captions_zip(tmp_path / "c.zip", {"77": '{"0": "A dog."}', "78": '{"0": "A cat."}'})
    rows = (HEAD + "77,1,1,1,why,0,1,CW,a,b,c,d,e\n78,1,1,1,why,0,1,CW,a,b,c,d,e\n").encode()
    library = InMemoryLibrary(["78"])
    with open_captions(path) as captions:
        with pytest.raises(OtherContent, match=r"the tree of video 78 with other content; replace it with --force"):
            await import_nextqa(library, rows, captions, "n")
        with pytest.raises(OtherContent):
            await import_captions(library, captions)
        assert library.writes == []
        await import_nextqa(library, rows, captions, "n", force=True)
        written = list(library.writes)
        await import_nextqa(library, rows.replace(b"why", b"how"), captions, "other")
        with pytest.raises(OtherContent, match="question set n with other content"):
            await import_nextqa(library, rows.replace(b"why", b"how"), captions, "n")
    assert written == ["video 77", "video 78", "questions n"]
    assert library.datasets["n"][0].text == "why"


async def test_trn_1_an_import_may_be_repeated(tmp_path: Path) -> None:
    path = captions_zip(tmp_path / "c.zip", {"77": '{"0": "A dog. It barks.", "1": "A cat."}'})
    rows = (HEAD + "77,1,1,1,why,0,1,CW,a,b,c,d,e\n").encode()
    library = InMemoryLibrary()
    with open_captions(path) as captions:
        first = await import_nextqa(library, rows, captions, "n")
        assert await import_nextqa(library, rows, captions, "n") == first


async def test_trn_1_captions_alone_make_trees(tmp_path: Path) -> None:
    files = {"77": '{"0": "A dog."}', "a video": '{"0": "A cat."}', "79": "["}
    path = captions_zip(tmp_path / "c.zip", files)
    library = InMemoryLibrary()
    with open_captions(path) as captions:
        with pytest.raises(FaultyImport) as caught:
            await import_captions(library, captions)
        assert [fault.place for fault in caught.value.faults] == ["captions of 79", "captions of a video"]
        assert "may hold only letters" in caught.value.faults[1].reason
        assert library.writes == []
        imported = await import_captions(library, captions, skip_bad=True)
    assert (imported.video_count, library.writes) == (1, ["video 77"])
    assert parse_tree(library.trees["77"]).at_level(3)[0].text == "A dog."


async def test_trn_1_summarise_asks_for_events_and_then_scenes(tmp_path: Path) -> None:
    class Shouting:
        async def summary(self, time: str, descriptions: Sequence[str], most_chars: int) -> str:
            return f"{time} {' '.join(descriptions)}".upper()[:most_chars]

    path = captions_zip(tmp_path / "c.zip", {"77": '{"0": "A dog.", "1": "A dog."}'})
    library = InMemoryLibrary()
    with open_captions(path) as captions:
        rows = (HEAD + "77,1,1,1,why,0,1,CW,a,b,c,d,e\n").encode()
        await import_nextqa(library, rows, captions, "n", summariser=Shouting())
    tree = parse_tree(library.trees["77"])
    assert tree.at_level(2)[0].text == "0S-2S A DOG. A DOG."
    assert tree.at_level(1)[0].text == "0S-2S 0S-2S A DOG. A DOG."


def video_folder(root: Path, video_id: str, content: bytes, frames: int = 0) -> None:
    (root / video_id / "frames").mkdir(parents=True)
    (root / video_id / "tree.json").write_bytes(content)
    for number in range(frames):
        (root / video_id / "frames" / f"L3_{number}.jpg").write_bytes(JPEG)


async def test_trn_1_trees_are_all_checked_before_the_first_is_written(tmp_path: Path) -> None:
    video_folder(tmp_path, "v1", tree_json(video_id="v1"), frames=20)
    video_folder(tmp_path, "v2", b"{")
    video_folder(tmp_path, "v3", tree_json(video_id="v1"))
    library = InMemoryLibrary()
    with pytest.raises(FaultyImport) as caught:
        await import_trees(library, TreeFolders(tmp_path))
    assert [fault.place for fault in caught.value.faults] == ["v2/tree.json", "v3/tree.json"]
    assert library.writes == []
    imported = await import_trees(library, TreeFolders(tmp_path), skip_bad=True)
    assert (imported.video_count, library.writes, len(library.frames["v1"])) == (1, ["video v1"], 20)


@pytest.mark.parametrize(
    ("frame", "content"),
    [
        ("L3 0.jpg", JPEG),
        ("empty.jpg", b""),
        ("text.jpg", b"no picture"),
        ("cut.jpg", JPEG[:-1]),
        ("two.jpg", JPEG[:2]),
    ],
)
async def test_trn_1_a_frame_that_cannot_be_stored_is_a_fault_before_anything_is_written(
    tmp_path: Path, frame: str, content: bytes
) -> None:
    video_folder(tmp_path, "v0", tree_json(video_id="v0"))
    video_folder(tmp_path, "v1", tree_json(video_id="v1"))
    (tmp_path / "v1" / "frames" / frame).write_bytes(content)
    library = InMemoryLibrary()
    with pytest.raises(FaultyImport, match=r"v1/tree\.json: (the )?frame"):
        await import_trees(library, TreeFolders(tmp_path))
    assert library.writes == []


async def test_trn_1_folders_that_cannot_name_a_video_and_folders_without_a_sound_tree_are_named(
    tmp_path: Path,
) -> None:
    video_folder(tmp_path, "my video", tree_json(video_id="my video"))
    library = InMemoryLibrary()
    with pytest.raises(FaultyImport, match="may hold only letters"):
        await import_trees(library, TreeFolders(tmp_path))
    with pytest.raises(UnreadableSource, match="no sound tree to import; the first of 1 faults: my video"):
        await import_trees(library, TreeFolders(tmp_path), skip_bad=True)


async def test_trn_1_another_tree_is_refused_before_any_is_written(tmp_path: Path) -> None:
    for video_id in ("v1", "v2"):
        video_folder(tmp_path, video_id, tree_json(video_id=video_id))
    library = InMemoryLibrary(["v2"])
    with pytest.raises(OtherContent, match="video v2"):
        await import_trees(library, TreeFolders(tmp_path))
    assert library.writes == []
    await import_trees(library, TreeFolders(tmp_path), force=True)
    assert library.writes == ["video v1", "video v2"]


def test_trn_1_frames_come_in_batches_that_fit_a_message(tmp_path: Path) -> None:
    video_folder(tmp_path, "v1", tree_json(), frames=40)
    batches: Iterator[list[tuple[str, bytes]]] = TreeFolders(tmp_path).frame_batches("v1")
    assert [len(batch) for batch in batches] == [16, 16, 8]


def test_trn_1_sources_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match=r"tree\.json"):
        TreeFolders(tmp_path)
    with pytest.raises(UnreadableSource, match="absent: no such folder"):
        TreeFolders(tmp_path / "absent")
    (tmp_path / "no.zip").write_bytes(b"no zip")
    with pytest.raises(UnreadableSource, match="neither a folder nor a ZIP"), open_captions(tmp_path / "no.zip"):
        pass


def test_qua_13_damaged_members_of_an_archive_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("77_cap.json", '{"0": "A dog."}' * 20)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            with open_captions(path) as captions:
                for video_id in captions.video_ids():
                    captions.read(video_id)
        except UnreadableSource as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017 -- a flag that nobody reads may be anything


def test_an_error_of_whoever_reads_an_archive_stays_what_it_is(tmp_path: Path) -> None:
    path = captions_zip(tmp_path / "c.zip", {"77": '{"0": "A dog."}'})
    with pytest.raises(OSError, match="of the caller"), open_captions(path):
        raise OSError("of the caller")


@pytest.mark.slow
async def test_trn_1_the_real_nextqa_set_is_imported_whole(public_data: Path) -> None:
    library = InMemoryLibrary()
    with open_captions(public_data / "nextqa/nextqa_allcaps_1fps.zip") as captions:
        content = (public_data / "nextqa/nextqa_val.csv").read_bytes()
        imported = await import_nextqa(library, content, captions, "nextqa")
    assert (imported.question_count, imported.video_count, imported.left_out) == (4996, 570, ())
