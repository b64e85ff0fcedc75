"""Everything that reads bytes from outside: files, streams, models' answers. One function for each, on bytes alone."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from services.evolver.domain.answers import read_object
from services.evolver.domain.apply import apply_edits
from services.evolver.domain.edits import CandidateStatus
from services.evolver.domain.errors import AnswerFault
from services.evolver.domain.proposal import read_edits
from services.evolver.domain.validate import Rules
from services.inference.domain.agent_reply import UnreadableReply, read_turn
from services.inference.domain.completion_stream import CompletionStream
from services.inference.domain.outcome import AttemptFault
from services.inference.domain.sse import EventTooLarge, SseDecoder
from services.questions import ParsedQuestions, parse_question_lines, render_question_lines
from services.runtime.bundled import bundled_path
from services.simulator.adapters.world_file import read_world
from services.simulator.domain.errors import WorldError
from services.skills import SkillFormatError, parse_skill
from services.templates import TemplateFormatError, TemplateSet, parse_template, read_folder
from services.trainer.adapters.caption_archive import open_captions
from services.trainer.adapters.question_files import read_questions
from services.trainer.domain.importing.captions_tree import CaptionFault, captions_tree, parse_captions
from services.trainer.domain.importing.errors import UnreadableSource
from services.trainer.domain.importing.gathering import Reading
from services.trainer.domain.importing.nextqa import parse_nextqa_csv
from services.trainer.domain.importing.text_mcq import parse_text_mcq
from services.video_tree import TreeFault, parse_tree, render_tree

Faults = Sequence[str]
SKILL = "---\nname: action\ndescription: Why.\ntask_type: Action\n---\n# Why\n\nOpen the event before it.\n\n- Start.\n"


@dataclass(frozen=True, slots=True)
class Reader:
    """What reads some bytes: it returns what is wrong with them (nothing: accepted) or raises one of `declared`.

    `names` is found in each fault: the line, field, node or part of the answer that a person would look for.
    """

    read: Callable[[bytes], Faults]
    names: re.Pattern[str]
    declared: tuple[type[Exception], ...] = ()


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _stream(content: bytes) -> Faults:
    decoder, stream = SseDecoder(), CompletionStream()
    pieces = [content[at : at + 97] for at in range(0, len(content), 97)]
    for event in [event for piece in pieces for event in decoder.feed(piece)] + decoder.close():
        stream.take(event)
    stream.completion("model")
    return ()


def _turn(content: bytes) -> Faults:
    read_turn(_text(content))
    return ()


@cache
def _templates() -> TemplateSet:
    names = ("diagnose.skill", "evolve.skill")
    return TemplateSet.load(read_folder(bundled_path("prompts"), ("diagnose", "evolve")), names)


def _judgement(content: bytes) -> Faults:
    return _templates()["diagnose.skill"].answer_faults(read_object(_text(content), "stop"))


def _edits(content: bytes) -> Faults:
    answer: dict[str, Any] = read_object(_text(content), "stop")
    if faults := _templates()["evolve.skill"].answer_faults(answer):
        return faults
    edits = read_edits(answer, ("q1", "q2")).edits
    candidate = apply_edits(SKILL, edits, Rules(max_chars=2000))
    if candidate.status is CandidateStatus.CANDIDATE:
        parse_skill(candidate.text)
    elif candidate.text != SKILL:
        raise AssertionError("a refused candidate changed the skill")
    return [outcome.reason for outcome in candidate.outcomes if outcome.reason] + [*map(str, candidate.violations)]


def _skill(content: bytes) -> Faults:
    skill = parse_skill(_text(content))
    if parse_skill(skill.text) != skill:
        raise AssertionError("a skill that was read is another one when it is read again")
    return ()


def _template(content: bytes) -> Faults:
    parse_template("agent.x", _text(content))
    return ()


def _world(content: bytes) -> Faults:
    read_world(_text(content), "world.toml")
    return ()


def _tree(content: bytes) -> Faults:
    tree = parse_tree(content)
    if parse_tree(render_tree(tree)) != tree:
        raise AssertionError("a tree that was read is another one when it was written")
    return ()


def _captions(content: bytes) -> Faults:
    tree = captions_tree("v", parse_captions(content))
    if parse_tree(render_tree(tree)) != tree:
        raise AssertionError("the tree of these captions can't be read")
    return ()


def _archive(content: bytes) -> Faults:
    with _File("captions.zip", content) as path, open_captions(path) as captions:
        for video_id in sorted(captions.video_ids()):
            parse_captions(captions.read(video_id))
    return ()


class _File:
    """A file with this content for the length of a `with`."""

    def __init__(self, name: str, content: bytes) -> None:
        self._name, self._content = name, content

    def __enter__(self) -> Path:
        self._folder = tempfile.TemporaryDirectory(prefix="bad-input-")
        path = Path(self._folder.name) / self._name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(self._content)
        return path

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _questions_of(parsed: ParsedQuestions) -> Faults:
    if parse_question_lines(render_question_lines(parsed.questions)).questions != parsed.questions:
        raise AssertionError("questions that were read are others when they were written")
    return [str(fault) for fault in parsed.faults]


def _question_file(name: str) -> Callable[[bytes], Faults]:
    def read(content: bytes) -> Faults:
        with _File(name, content) as path:
            return _questions_of(read_questions(path.parent if "/" in name else path, Reading()))

    return read


_PLACE = re.compile(r"^(line|row|item) \d+|^the file: (line|not valid|it must)|\.json|\.zip|\.parquet")
_OF_AN_ANSWER = re.compile(
    r"^\$|candidate|content|object|answer|reply|action|args|tool|key|cases|edits?|target|front matter|text|body|\w+: "
)
READERS: Mapping[str, Reader] = {
    "event stream": Reader(_stream, re.compile(r"\S"), (EventTooLarge, AttemptFault)),
    "agent's reply": Reader(_turn, _OF_AN_ANSWER, (UnreadableReply,)),
    "judge's answer": Reader(_judgement, _OF_AN_ANSWER, (AnswerFault,)),
    "proposed edits": Reader(_edits, _OF_AN_ANSWER, (AnswerFault,)),
    "skill file": Reader(_skill, re.compile(r"front matter"), (SkillFormatError,)),
    "template file": Reader(_template, re.compile(r"agent\.x"), (TemplateFormatError,)),
    "world file": Reader(_world, re.compile(r"world\.toml"), (WorldError,)),
    "tree file": Reader(_tree, re.compile(r"line \d+|byte \d+|\w+ must|is empty|node|key|JSON|\w+ is"), (TreeFault,)),
    "captions": Reader(_captions, re.compile(r"JSON|second|object of captions"), (CaptionFault,)),
    "archive of captions": Reader(
        _archive, re.compile(r"\.zip|JSON|second|object of captions"), (UnreadableSource, CaptionFault)
    ),
    "questions of the library": Reader(lambda content: _questions_of(parse_question_lines(content)), _PLACE),
    "questions.jsonl": Reader(_question_file("questions.jsonl"), _PLACE),
    "questions.json": Reader(_question_file("questions.json"), _PLACE),
    "questions.parquet": Reader(_question_file("questions.parquet"), _PLACE, (UnreadableSource,)),
    "folder of question lists": Reader(_question_file("folder/v1.json"), _PLACE),
    "NExT-QA's CSV": Reader(lambda content: _questions_of(parse_nextqa_csv(content, Reading())), _PLACE),
    "text-only questions": Reader(lambda content: _questions_of(parse_text_mcq(content, "T")), _PLACE),
}
