"""TRN-1: every fault of a question file is listed, by line."""

import json

from services.questions import parse_question_lines, render_question_lines

SOUND = {
    "question_id": "q1",
    "video_id": "v1",
    "task_type": "Counting",
    "question": "How many £?",
    "options": ["①", "two"],
    "answer": "b",
}


def lines(*records: object) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def reasons(content: bytes, known_videos: set[str] | None = None) -> list[str]:
    return [str(fault) for fault in parse_question_lines(content, known_videos).faults]


def test_trn_1_a_sound_line_becomes_a_question_whose_unit_is_itself() -> None:
    parsed = parse_question_lines(b"\xef\xbb\xbf" + lines(SOUND) + b"\r\n\n", {"v1"})
    assert parsed.faults == ()
    (question,) = parsed.questions
    assert (question.unit_id, question.answer, question.options) == ("q1", "B", ("①", "two"))


def test_trn_1_all_faults_are_listed_with_their_lines() -> None:
    content = b"".join(
        [
            b"{not json}\n",
            b'"\xff"\n',
            lines([], SOUND, SOUND | {"question": " "}, SOUND | {"question_id": "q2", "options": ["one"]}),
            lines({**SOUND, "question_id": "q3", "answer": "C"}, {**SOUND, "question_id": "q4", "options": ["x", 3]}),
            lines({"question_id": 5}),
        ]
    )
    assert [line.split(":")[0] for line in reasons(content)] == [
        "line 1",
        "line 2",
        "line 3",
        "line 5",
        "line 6",
        "line 6",
        "line 7",
        "line 8",
        "line 8",
        *["line 9"] * 5,
    ]


def test_trn_1_a_repeated_id_names_both_places() -> None:
    assert reasons(lines(SOUND, SOUND)) == ["line 2: question 'q1': this question id already stands at line 1"]


def test_trn_1_an_unknown_video_is_a_fault_only_when_videos_are_known() -> None:
    assert reasons(lines(SOUND)) == []
    assert "unknown video 'v1'" in reasons(lines(SOUND), {"v2"})[0]


def test_trn_1_a_unit_must_not_mix_types_or_videos() -> None:
    unit = SOUND | {"unit_id": "u"}
    content = lines(
        unit, unit | {"question_id": "q2", "task_type": "Other"}, unit | {"question_id": "q3", "video_id": "v2"}
    )
    assert ["task type 'Counting'" in reasons(content)[0], "video 'v1'" in reasons(content)[1]] == [True, True]


def test_trn_1_a_video_id_must_be_able_to_name_a_folder() -> None:
    for video_id in ("../x", ".hidden", "a\\b", "a/b"):
        assert "cannot be a folder name" in reasons(lines(SOUND | {"video_id": video_id}))[0]


def test_trn_1_a_line_separator_inside_a_text_does_not_end_the_line() -> None:
    parsed = parse_question_lines(lines(SOUND | {"question": "one\u2028two\nthree"}))
    assert parsed.questions[0].text == "one\u2028two\nthree"


def test_trn_1_rendering_and_parsing_give_equal_questions() -> None:
    questions = parse_question_lines(lines(SOUND, SOUND | {"question_id": "q2", "unit_id": "q1"})).questions
    assert parse_question_lines(render_question_lines(questions)).questions == questions
