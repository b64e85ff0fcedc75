"""TRN-1: the forms in which question files come, with the irregularities that real ones have."""

import json
from pathlib import Path
from typing import Any

import pytest

from services.questions import ParsedQuestions
from services.trainer.adapters.question_files import read_questions
from services.trainer.domain.importing.errors import UnreadableSource
from services.trainer.domain.importing.gathering import Reading
from services.trainer.domain.importing.nextqa import parse_nextqa_csv
from services.trainer.domain.importing.options import UnclearAnswer, answer_letter, without_letters
from services.trainer.domain.importing.per_video_lists import parse_per_video_lists
from services.trainer.domain.importing.questions_jsonl import parse_questions_jsonl
from services.trainer.domain.importing.text_mcq import parse_text_mcq
from services.trainer.domain.importing.videomme import parse_videomme_json, parse_videomme_rows

ABOUT = "What is this video\nmainly about?"
NESTED: list[dict[str, Any]] = [
    {
        "video_id": "001",
        "duration": "short",
        "domain": "Knowledge",
        "sub_category": "History",
        "questions": [
            {
                "question_id": "001-1",
                "task_type": "Counting Problem",
                "question": "How much does the café ask for the ① ticket?",
                "options": ["A. £5.", "B. £7", "C. £5.", "D. ①②"],
                "answer": "C",
                "response": "",
            },
            {
                "question_id": "001-2",
                "task_type": "Information Synopsis",
                "question": ABOUT,
                "options": ["A. Bread.", "B. Wine.", "C. Oil.", "D. Salt."],
                "answer": "A",
                "response": "",
            },
        ],
    },
    {
        "video_id": "601",
        "duration": "long",
        "domain": "Sports",
        "sub_category": "Tennis",
        "questions": [
            {
                "question_id": "601-1",
                "task_type": "Information Synopsis",
                "question": ABOUT,
                "options": ["A. A match.", "B. A race.", "C. A swim.", "D. A ride."],
                "answer": "D",
                "response": "",
            }
        ],
    },
]
FLAT = [
    {
        "video_id": video["video_id"],
        "duration": video["duration"],
        "domain": video["domain"],
        "sub_category": video["sub_category"],
        "url": "https://example.org/watch",
        "videoID": "abc_" + video["video_id"],
        **{name: value for name, value in question.items() if name != "response"},
    }
    for video in NESTED
    for question in video["questions"]
]
OLDER = [
    {
        "video_id": row["video_id"],
        "duration_category": row["duration"],
        "video_category": row["domain"],
        "video_subcategory": row["sub_category"],
        "question_id": row["question_id"],
        "task_type": row["task_type"],
        "question": row["question"],
        "choices": row["options"],
        "answer": row["answer"],
    }
    for row in FLAT
]


def encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def faults(parsed: ParsedQuestions) -> list[str]:
    return [str(fault) for fault in parsed.faults]


def summary(parsed: ParsedQuestions) -> list[tuple[str, str, str]]:
    return [(question.question_id, question.video_id, question.answer) for question in parsed.questions]


EXPECTED = [("001-1", "001", "C"), ("001-2", "001", "A"), ("601-1", "601", "D")]


@pytest.mark.parametrize("form", [NESTED, FLAT, OLDER], ids=["nested", "flat", "older"])
def test_trn_1_the_json_forms_of_videomme_give_the_same_questions(form: object) -> None:
    parsed = parse_videomme_json(encoded(form), Reading())
    assert faults(parsed) == []
    assert summary(parsed) == EXPECTED
    first, second, _ = parsed.questions
    assert first.options == ("£5.", "£7", "£5.", "①②")
    assert (first.task_type, second.text) == ("Counting Problem", ABOUT)


def test_trn_1_the_parquet_form_is_read(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "videomme.parquet"
    parquet.write_table(pa.Table.from_pylist(FLAT), path)
    assert summary(read_questions(path, Reading())) == EXPECTED


def test_trn_1_a_faulty_parquet_file_is_refused_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "videomme.parquet"
    path.write_bytes(b"PAR1 this is none, although it begins and ends like one PAR1")
    with pytest.raises(UnreadableSource, match="not a parquet file that can be read") as caught:
        read_questions(path, Reading())
    assert "\n" not in str(caught.value)


def test_qua_13_a_parquet_file_whose_texts_are_no_text_is_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "videomme.parquet"
    parquet.write_table(pa.Table.from_pylist(FLAT), path, compression="NONE")
    content = path.read_bytes()
    assert b"mainly about" in content
    path.write_bytes(content.replace(b"mainly about", b"mainly \xd7bout"))
    with pytest.raises(UnreadableSource, match="not a parquet file that can be read: 'utf-8' codec"):
        read_questions(path, Reading())


def test_trn_1_the_video_whose_tree_is_known_is_meant() -> None:
    parsed = parse_videomme_json(encoded(FLAT), Reading(known_videos={"abc_001", "abc_601"}))
    assert [question.video_id for question in parsed.questions] == ["abc_001", "abc_001", "abc_601"]
    assert faults(parse_videomme_json(encoded(FLAT), Reading(known_videos={"abc_001"}))) == [
        f"line {encoded(FLAT).decode()[: encoded(FLAT).decode().index('601')].count(chr(10))}: "
        "question '601-1': unknown video '601'; import its tree first"
    ]


@pytest.mark.parametrize("form", [NESTED, FLAT, OLDER], ids=["nested", "flat", "older"])
def test_trn_15_only_the_long_videos_can_be_imported(form: object) -> None:
    parsed = parse_videomme_json(encoded(form), Reading(durations=("long",)))
    assert summary(parsed) == EXPECTED[2:]
    rows = parse_videomme_rows(FLAT, Reading(durations=("long",)))
    assert summary(rows) == EXPECTED[2:]
    lines = "\n".join(json.dumps(row) for row in OLDER).encode()
    assert summary(parse_questions_jsonl(lines, Reading(durations=("long",)))) == EXPECTED[2:]


def test_trn_1_options_and_answers_as_texts_without_letters() -> None:
    record = {**FLAT[1], "options": ["Bread", "Wine", "Oil", "Salt"], "answer": "Wine"}
    assert summary(parse_videomme_json(encoded([record]), Reading())) == [("001-2", "001", "B")]
    repeated = {**record, "options": ["Wine", "Wine", "Oil", "Salt"]}
    assert (
        "is the text of options A, B; give its letter" in faults(parse_videomme_json(encoded([repeated]), Reading()))[0]
    )


def test_trn_1_a_template_with_trailing_commas_is_told_where() -> None:
    content = b'[\n  {"video_id": "001", "questions": [\n    {"question_id": "001-1",\n     "answer": "A",},\n  ]}\n]'
    (fault,) = faults(parse_videomme_json(content, Reading()))
    assert "line 4" in fault
    assert "comma" in fault


def test_trn_1_faults_of_nested_questions_name_their_own_lines() -> None:
    broken = json.loads(json.dumps(NESTED))
    broken[0]["questions"][1]["answer"] = "E"
    broken[1]["questions"][0]["options"] = ["A. only"]
    content = encoded(broken).decode()
    lines = [content[: content.index(f'"{question_id}"')].count("\n") for question_id in ("001-2", "601-1")]
    found = faults(parse_videomme_json(content.encode(), Reading()))
    assert [fault.split(":")[0] for fault in found] == [f"line {line}" for line in lines]
    assert "answer 'E' is no option" in found[0]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"\xff", "not UTF-8"),
        (b"{}", "a list of videos or of questions"),
        (b"[1]", "item 1: a question must be a JSON object"),
        (b'[{"video_id": "1", "questions": 3}]', "line 1: questions must be a list"),
        (b'[{"video_id": "1", "questions": [3]}]', "line 1 question 1: a question must be"),
        (b"[" * 50_000, "not valid JSON"),
    ],
)
def test_trn_1_files_of_another_shape_are_named(content: bytes, fault: str) -> None:
    assert fault in faults(parse_videomme_json(content, Reading()))[0]


def test_trn_1_jsonl_lists_faults_in_order_of_line() -> None:
    good = FLAT[0]
    lines = [json.dumps(good), "{bad", json.dumps({**good, "answer": "Z"}), json.dumps(good), ""]
    parsed = parse_questions_jsonl("\n".join(lines).encode(), Reading())
    assert [fault.place for fault in parsed.faults] == ["line 2", "line 3", "line 4"]
    assert len(parsed.questions) == 1


def test_trn_1_units_of_several_questions_are_kept() -> None:
    lines = [json.dumps({**row, "unit_id": "001"}) for row in FLAT[:1]]
    lines.append(json.dumps({**FLAT[1], "unit_id": "001", "task_type": "Counting Problem"}))
    parsed = parse_questions_jsonl("\n".join(lines).encode(), Reading())
    assert {question.unit_id for question in parsed.questions} == {"001"}


def test_trn_1_a_question_without_a_video_is_a_fault_unless_the_set_is_text_only() -> None:
    line = b'{"id": "t-1", "question": "2 + 2?", "options": ["3", "4"], "answer": "B"}\n'
    assert "video_id is missing" in faults(parse_questions_jsonl(line, Reading(task_type="Sums")))[0]
    (question,) = parse_text_mcq(line, "Sums").questions
    assert (question.video_id, question.task_type, question.group_id) == ("", "Sums", "t-1")


def test_trn_1_a_folder_of_lists_names_file_and_line() -> None:
    plain = [
        {name: row[name] for name in ("question_id", "task_type", "question", "options", "answer")} for row in FLAT
    ]
    files = {"b": encoded({"questions": plain[2:]}), "a": encoded(plain[:2]), "c": b"[,]", "d": encoded([{**FLAT[0]}])}
    parsed = parse_per_video_lists(files, Reading())
    assert summary(parsed) == [("001-1", "a", "C"), ("001-2", "a", "A"), ("601-1", "b", "D")]
    assert [fault.place for fault in parsed.faults] == ["c.json", "d.json line 2"]


CSV_HEAD = "video,frame_count,width,height,question,answer,qid,type,a0,a1,a2,a3,a4\n"


def test_trn_1_nextqa_rows_become_questions() -> None:
    content = CSV_HEAD + '77,9,1,1,"why, then",3,6,TP,a,b,c,d,e\n78,9,1,1,how,0,6,CH,a,a,c,d,e\n'
    parsed = parse_nextqa_csv(content.encode(), Reading())
    assert faults(parsed) == []
    assert [(q.question_id, q.task_type, q.answer, q.text) for q in parsed.questions] == [
        ("77-6", "Temporal Previous", "D", "why, then"),
        ("78-6", "Causal How", "A", "how"),
    ]


def test_trn_1_nextqa_faults_name_the_line_on_which_the_row_begins() -> None:
    content = (
        CSV_HEAD
        + '77,9,1,1,"two\nlines",5,6,CW,a,b,c,d,e\n'
        + "77,9,1,1,what,0,7,XX,a,b,c,d,e\n"
        + "77,9,1,1,what,0,8,CW,a,b,,d,e\n"
        + "99,9,1,1,what,0,8,CW,a,b,c,d,e\n"
        + "77,9,1,1,what,0,,CW,a,b,c,d,e\n"
        + "77,9\n"
    )
    parsed = parse_nextqa_csv(content.encode(), Reading(known_videos={"77"}))
    assert [fault.place for fault in parsed.faults] == [f"line {line}" for line in (2, 4, 5, 6, 7, 8)]
    assert "columns are missing: a4" in faults(parse_nextqa_csv(CSV_HEAD.replace(",a4", "").encode(), Reading()))[0]
    assert faults(parse_nextqa_csv(b'"', Reading())) == ["line 1: not valid CSV: unexpected end of data"]


@pytest.mark.parametrize("answer", ["9" * 5000, "5", "-1", "\u0663", "\u00b2", ""])
def test_qua_13_an_answer_of_nextqa_that_is_no_index_of_an_option_is_a_fault(answer: str) -> None:
    content = f"{CSV_HEAD}77,1,1,1,why,{answer},1,CW,a,b,c,d,e\n"
    assert faults(parse_nextqa_csv(content.encode(), Reading())) == [
        f"line 2: question '77-1': answer {answer[:40]!r} is no option; it must be 0 to 4"
    ]


def test_qua_13_a_byte_of_nextqa_that_is_no_text_is_found_by_its_line() -> None:
    content = f"{CSV_HEAD}77,1,1,1,".encode() + b"\xff"
    assert faults(parse_nextqa_csv(content, Reading())) == [
        f"line 2: not UTF-8: invalid start byte at byte {len(content)} of the file"
    ]


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        (["A. red", "B. blue"], ["red", "blue"]),
        (["(A) red", "(B) blue"], ["red", "blue"]),
        (["A) red", "B) blue."], ["red", "blue."]),
        (["A. Lincoln", "J. Adams"], ["A. Lincoln", "J. Adams"]),
        (["A. red", "blue"], ["A. red", "blue"]),
        (["red", "blue"], ["red", "blue"]),
        (["A. ", "B. "], ["A. ", "B. "]),
        ([], []),
    ],
)
def test_trn_1_letters_are_dropped_only_if_every_option_has_its_own(options: list[str], texts: list[str]) -> None:
    assert without_letters(options) == texts


@pytest.mark.parametrize(
    ("answer", "letter"), [("b", "B"), ("B.", "B"), ("(B)", "B"), ("blue", "B"), ("B. blue", "B"), ("B) blue", "B")]
)
def test_trn_1_an_answer_is_a_letter_or_a_text(answer: str, letter: str) -> None:
    assert answer_letter(answer, ["red", "blue"]) == letter


def test_trn_1_a_letter_wins_over_an_option_that_is_another_letter() -> None:
    assert answer_letter("C", ["C", "Fe", "O"]) == "C"


@pytest.mark.parametrize("answer", ["green", "A. blue", "C", "", "red blue"])
def test_trn_1_an_answer_that_names_no_single_option_is_unclear(answer: str) -> None:
    with pytest.raises(UnclearAnswer):
        answer_letter(answer, ["red", "blue"])


def test_trn_1_kinds_of_files_that_are_not_known_are_named(tmp_path: Path) -> None:
    for name, words in [("x.csv", "import nextqa"), ("x.txt", "not a kind"), ("gone.json", "No such file")]:
        if not name.startswith("gone"):
            (tmp_path / name).write_text("x")
        with pytest.raises(UnreadableSource, match=words):
            read_questions(tmp_path / name, Reading())
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnreadableSource, match="holds no"):
        read_questions(tmp_path / "empty", Reading())


@pytest.mark.parametrize(("name", "count"), [("mcq_ARC-Challenge", 1172), ("mcq_openbookqa", 500)])
def test_trn_1_real_text_sets_are_read_whole(public_data: Path, name: str, count: int) -> None:
    parsed = parse_text_mcq((public_data / f"text_mcq/{name}.jsonl").read_bytes(), "Science")
    assert (len(parsed.questions), faults(parsed)) == (count, [])


def test_trn_1_the_real_nextqa_csv_is_read_whole(public_data: Path) -> None:
    parsed = parse_nextqa_csv((public_data / "nextqa/nextqa_val.csv").read_bytes(), Reading())
    assert (len(parsed.questions), faults(parsed)) == (4996, [])
    assert len({question.video_id for question in parsed.questions}) == 570
    counts = {name: sum(q.task_type == name for q in parsed.questions) for name in ("Causal Why", "Temporal Previous")}
    assert counts == {"Causal Why": 1924, "Temporal Previous": 54}
