"""QUA-13: no question file and no caption file breaks an import; what is sound survives a round trip."""

import csv
import io
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from services.questions import ParsedQuestions, parse_question_lines, render_question_lines
from services.trainer.domain.importing.captions_tree import CaptionFault, captions_tree, parse_captions
from services.trainer.domain.importing.gathering import Reading
from services.trainer.domain.importing.nextqa import parse_nextqa_csv
from services.trainer.domain.importing.per_video_lists import parse_per_video_lists
from services.trainer.domain.importing.questions_jsonl import parse_questions_jsonl
from services.trainer.domain.importing.segments import PieceLength, cut
from services.trainer.domain.importing.videomme import parse_videomme_json, parse_videomme_rows
from services.video_tree import parse_tree, render_tree

ODD_TEXTS = st.text(st.characters(), max_size=12) | st.sampled_from(
    ["A. x", "B. y", "A", "b.", "v1", "x/../y", "\u2028"]
)
ODD = st.none() | st.booleans() | st.integers() | st.floats() | ODD_TEXTS
OPTIONS = st.lists(ODD_TEXTS, max_size=5) | st.dictionaries(st.sampled_from("ABC"), ODD_TEXTS) | ODD
RECORDS = st.fixed_dictionaries(
    {},
    optional={
        "question_id": ODD,
        "id": ODD,
        "video_id": ODD,
        "videoID": ODD,
        "task_type": ODD,
        "duration": ODD,
        "question": ODD,
        "options": OPTIONS,
        "choices": OPTIONS,
        "answer": ODD,
        "unit_id": ODD,
        "questions": ODD | st.lists(ODD, max_size=2),
    },
)
READINGS = st.builds(
    Reading,
    known_videos=st.none() | st.just({"v1"}),
    task_type=st.sampled_from(["", "T"]),
    text_only=st.booleans(),
    durations=st.sampled_from([(), ("long",)]),
)


def survives(parsed: ParsedQuestions) -> None:
    assert parse_question_lines(render_question_lines(parsed.questions)).questions == parsed.questions
    assert all(fault.place and fault.reason for fault in parsed.faults)


@settings(max_examples=80, deadline=None)
@given(st.lists(RECORDS, max_size=5), READINGS)
def test_qua_13_records_of_any_shape_become_questions_or_named_faults(records: list[object], reading: Reading) -> None:
    nested = [{"video_id": "v1", "questions": records}, *records]
    survives(parse_videomme_json(json.dumps(records).encode(), reading))
    survives(parse_videomme_json(json.dumps(nested).encode(), reading))
    survives(parse_per_video_lists({"v1": json.dumps(records).encode()}, reading))
    survives(parse_questions_jsonl("\n".join(map(json.dumps, records)).encode(), reading))
    survives(parse_videomme_rows([record for record in records if isinstance(record, dict)], reading))


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=80))
def test_qua_13_any_bytes_are_refused_with_a_fault(content: bytes) -> None:
    for parsed in (
        parse_videomme_json(content, Reading()),
        parse_per_video_lists({"v": content}, Reading()),
        parse_nextqa_csv(content, Reading()),
        parse_questions_jsonl(content, Reading()),
    ):
        assert parsed.questions == ()
        survives(parsed)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(ODD_TEXTS, min_size=10, max_size=10), max_size=4))
def test_qua_13_csv_cells_of_any_content_become_questions_or_named_faults(rows: list[list[str]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["video", "question", "answer", "qid", "type", "a0", "a1", "a2", "a3", "a4"])
    for row in rows:
        writer.writerow([cell.encode("utf-8", "replace").decode() for cell in row])
    survives(parse_nextqa_csv(text.getvalue().encode(), Reading()))


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.integers(0, 400), st.text(min_size=1, max_size=30), min_size=1, max_size=40))
def test_trn_1_captions_of_any_text_give_a_sound_tree_or_a_named_fault(captions: dict[int, str]) -> None:
    try:
        read = parse_captions(json.dumps(captions).encode())
    except CaptionFault as fault:
        assert str(fault)  # noqa: PT017 -- either outcome is right
        return
    tree = captions_tree("v", read)
    assert parse_tree(render_tree(tree)) == tree
    assert len(tree.at_level(3)) == len(captions)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=60))
def test_trn_1_pieces_cover_any_sequence_once(differences: list[float]) -> None:
    pieces = cut(differences, PieceLength(wanted=5, shortest=3, longest=9))
    assert [place for start, end in pieces for place in range(start, end)] == list(range(len(differences) + 1))
    assert all(end - start <= 9 for start, end in pieces)
