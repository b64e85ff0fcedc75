"""Whether an edited file may be tried at all (EVO-8, second half)."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from services.evolver.domain.edits import Violation
from services.evolver.domain.guard import SKILL_GUARD, Guard
from services.evolver.domain.leaks import NO_LEAKS, LeakIndex
from services.skills import block_spans, fence_spans, front_matter_span, marker_faults, normalise_newlines, open_fence

MIN_RATIO, MAX_RATIO = 0.3, 2.0
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits a candidate must keep: `max_chars` of the whole file, what is protected, what would leak."""

    max_chars: int
    guard: Guard = SKILL_GUARD
    leaks: LeakIndex = field(default=NO_LEAKS, repr=False)


def validate_candidate(original: str, edited: str, rules: Rules) -> tuple[Violation, ...]:
    """Return every rule that `edited` breaks as a successor of `original`; () if it may be tried.

    Both are compared with LF line ends. The length ratio is taken over the free body, which is what an edit can change:
    the text without front matter and marked blocks. A file whose free body was blank has no ratio to keep.
    """
    before, after = normalise_newlines(original), normalise_newlines(edited)
    return tuple(_violations(before, after, rules))


def _violations(before: str, after: str, rules: Rules) -> Iterator[Violation]:
    if front_matter_span(before).of(before) != front_matter_span(after).of(after):
        yield Violation("front_matter", "the front matter changed")
    elif rules.guard.kept(before) != rules.guard.kept(after):
        yield Violation("protected", "a marked block or frozen section changed")
    yield from (Violation("markers", fault) for fault in marker_faults(after))
    if (offset := open_fence(after)) is not None:
        yield Violation("fences", f"the code fence in line {after.count(chr(10), 0, offset) + 1} is not closed")
    yield from _length_violations(before, after, rules.max_chars)
    yield from _duplicates(before, after)
    if (leak := rules.leaks.leak_in(after, before)) is not None:
        yield Violation("leak", f"repeats a question: {leak!r}")
    if not is_storable(after):
        yield Violation("encoding", "holds a NUL or a lone surrogate")


def free_body(text: str) -> str:
    """Return the body without front matter and marked blocks, which is what ordinary edits can change."""
    start = front_matter_span(text).end
    parts = []
    for _, span in block_spans(text):
        if span.start >= start:
            parts.append(text[start : span.start])
            start = span.end
    return "".join([*parts, text[start:]])


def _length_violations(before: str, after: str, max_chars: int) -> Iterator[Violation]:
    old, new = len(free_body(before).strip()), len(free_body(after).strip())
    if old and not MIN_RATIO * old <= new <= MAX_RATIO * old:
        yield Violation("length", f"the body has {new} characters, allowed are {MIN_RATIO} to {MAX_RATIO} times {old}")
    if len(after) > max_chars:
        yield Violation("max_chars", f"the file has {len(after)} characters, at most {max_chars} are allowed")


def _duplicates(before: str, after: str) -> Iterator[Violation]:
    had, has = Counter(_paragraphs(before)), Counter(_paragraphs(after))
    for paragraph, count in has.items():
        if count > max(1, had[paragraph]):
            yield Violation("duplicates", f"stands {count} times: {paragraph[:120]!r}")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs and list items outside front matter, fences and comments, blank space and list markers aside."""
    visible, end = [], front_matter_span(text).end
    for fence in fence_spans(text):
        visible.append(text[end : max(end, fence.start)])
        end = max(end, fence.end)
    for block in re.split(r"\n[ \t]*\n", _COMMENT.sub("\n\n", "\n\n".join([*visible, text[end:]]))):
        for item in _ITEM.split(block):
            words = " ".join(item.split()).casefold()
            if re.search(r"\w", words):
                yield words


def is_storable(text: str) -> bool:
    """Tell whether `text` can be stored and sent: no NUL, no lone surrogate (they come out of escapes in JSON)."""
    return _UNSTORABLE.search(text) is None
