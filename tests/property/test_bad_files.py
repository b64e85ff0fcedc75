"""QUA-13: a corpus of bad bytes, and any text at all, through everything that reads files, model answers or streams.

Each reader returns, or raises the one error that it declares, with a message; it never takes long over a small input.
"""

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.evolver.domain import answers
from services.evolver.domain.errors import AnswerFault
from services.inference.domain import agent_reply
from services.inference.domain.sse import EventTooLarge, SseDecoder
from services.questions import parse_question_lines
from services.simulator.adapters.world_file import read_world
from services.simulator.domain.errors import WorldError
from services.skills import SkillFormatError, parse_skill
from services.templates import TemplateFormatError, parse_template
from services.video_tree import TreeFault, parse_tree

SECONDS = 3.0
CORPUS: dict[str, bytes] = {
    "nothing": b"",
    "a BOM alone": b"\xef\xbb\xbf",
    "zeros": b"\0" * 1000,
    "no UTF-8": b'\xff\xfe{"a": \x80}',
    "a lone surrogate": b'{"text": "\\ud800"}',
    "deep lists": b"[" * 50_000,
    "deep objects": b'{"a":' * 20_000,
    "deep and closed": b"[" * 2_000 + b"]" * 2_000,
    "a huge integer": b'{"duration": ' + b"9" * 5_000 + b"}",
    "a huge exponent": b'{"duration": 1e999999}',
    "NaN": b'{"duration": NaN, "x": -Infinity}',
    "a key twice": b'{"a": 1, "a": 2}',
    "braces": b"{" * 3_000 + b"}" * 3_000,
    "quotes": b'{"' * 5_000,
    "escapes": b'{"a": "' + b"\\u" * 5_000 + b'"}',
    "cut in the middle": b'{"question_id": "q", "text": "Was pass\xc3',
    "a YAML alias bomb": b"---\nname: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n---\ntext\n",
    "a YAML tag": b"---\nname: !!python/object/apply:os.system ['true']\ndescription: b\n---\ntext\n",
    "front matter without end": b"---\nname: a\n" + b"x" * 10_000,
    "deep YAML": b"---\n" + b"[" * 5_000 + b"\n---\n",
    "a YAML date": b"---\nname: 2020-01-01\ndescription: 1e3\n---\ntext\n",
    "line separators": "a\u2028b\u2029c\u0085d".encode(),
    "carriage returns": b"data: a\r\rdata: b\r\n\r\n\r",
    "an event without end": b"data: " + b"x" * 100_000,
    "placeholders": b"---\nname: a\n---\n{{" + b"{{x" * 2_000 + b"}}",
    "markers": b"<!-- APPENDIX_START -->" * 500 + b"<!-- APPENDIX_END -->",
    "HTML": b"<!DOCTYPE html><html><body>502</body></html>",
}


def text_of(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def decode_stream(content: bytes) -> object:
    decoder = SseDecoder()
    return [event for piece in (content[:7], content[7:]) for event in decoder.feed(piece)] + decoder.close()


READERS: dict[str, tuple[Callable[[bytes], object], tuple[type[Exception], ...]]] = {
    "tree file": (parse_tree, (TreeFault,)),
    "question file": (parse_question_lines, ()),
    "skill file": (lambda content: parse_skill(text_of(content)), (SkillFormatError,)),
    "template file": (lambda content: parse_template("agent.x", text_of(content)), (TemplateFormatError,)),
    "world file": (lambda content: read_world(text_of(content), "world"), (WorldError,)),
    "event stream": (decode_stream, (EventTooLarge,)),
    "agent's reply": (lambda content: agent_reply.read_turn(text_of(content)), (agent_reply.UnreadableReply,)),
    "judge's answer": (lambda content: answers.read_object(text_of(content), "stop"), (AnswerFault,)),
}


def require_clear(reader: str, content: bytes) -> None:
    read, declared = READERS[reader]
    began = time.process_time()
    try:
        read(content)
    except declared as fault:
        assert str(fault)  # noqa: PT017 -- either outcome is right
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content", CORPUS.values(), ids=CORPUS)
def test_qua_13_bad_bytes_are_read_or_refused_clearly(reader: str, content: bytes) -> None:
    require_clear(reader, content)


PIECES = st.sampled_from([piece for content in CORPUS.values() for piece in (content[:12], content[-12:])])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(READERS)), st.lists(PIECES | st.binary(max_size=12), max_size=12).map(b"".join))
def test_qua_13_and_so_are_mixtures_of_them(reader: str, content: bytes) -> None:
    require_clear(reader, content)


def test_the_question_file_reader_names_the_line_of_a_fault() -> None:
    faults = parse_question_lines(b'{"question_id": "q"}\n\n{"cut\n').faults
    assert faults
    assert all("line" in str(fault) for fault in faults)
