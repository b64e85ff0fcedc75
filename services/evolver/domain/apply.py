"""Applying edits to a text (EVO-8, first half). Pure and total: any text and any edits give an accounted result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.evolver.domain.edits import Candidate, CandidateStatus, Edit, EditOp, EditOutcome, EditStatus, Violation
from services.evolver.domain.guard import Guard
from services.evolver.domain.validate import Rules, is_storable, validate_candidate
from services.skills import Span, fence_spans, front_matter_span, holds_marker, normalise_newlines, open_fence

_COUNT_LIMIT = 100


class Refused(Exception):
    """Why one edit isn't applied."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The part of the text that `content` takes the place of."""

    span: Span
    content: str


def apply_edits(text: str, edits: Sequence[Edit], rules: Rules) -> Candidate:
    """Return `text` with the edits applied in order, each on what the earlier ones left, and the whole validated.

    An edit that can't be applied safely is refused with its reason and the others go on. When none applies the result
    is SKIPPED, when the whole breaks a rule REJECTED; both return `text` untouched.
    """
    original = normalise_newlines(text)
    current = original
    outcomes = []
    for edit in edits:
        try:
            current = _applied(current, original, edit, rules)
            outcomes.append(EditOutcome(edit, EditStatus.APPLIED))
        except Refused as refusal:
            outcomes.append(EditOutcome(edit, EditStatus.REFUSED, str(refusal)))
    if current == original:
        return Candidate(text, current, CandidateStatus.SKIPPED, tuple(outcomes))
    violations = (*validate_candidate(original, current, rules), *_half_fences(outcomes))
    if violations:
        return Candidate(text, current, CandidateStatus.REJECTED, tuple(map(_withdrawn, outcomes)), violations)
    return Candidate(current, current, CandidateStatus.CANDIDATE, tuple(outcomes))


def _half_fences(outcomes: Sequence[EditOutcome]) -> Iterator[Violation]:
    """Yield a violation for each edit that opens a fence and leaves it to another edit to close it.

    The file may look sound then, but what stands between the two edits has become code.
    """
    for number, outcome in enumerate(outcomes):
        if outcome.status is EditStatus.APPLIED and open_fence(normalise_newlines(outcome.edit.content)) is not None:
            yield Violation("fences", f"edit {number} opens a code fence and does not close it")


def _withdrawn(outcome: EditOutcome) -> EditOutcome:
    if outcome.status is not EditStatus.APPLIED:
        return outcome
    return EditOutcome(outcome.edit, EditStatus.REFUSED, "the candidate as a whole was refused")


def _applied(text: str, original: str, edit: Edit, rules: Rules) -> str:
    target, content = normalise_newlines(edit.target), normalise_newlines(edit.content)
    _check_form(edit.op, target, content)
    if (leak := rules.leaks.leak_in(content, original)) is not None:
        raise Refused(f"leak: the content repeats a question: {leak!r}")
    if edit.op is EditOp.APPEND:
        place = _append_place(text, content, rules.guard)
    else:
        place = _place(text, edit.op, target, content)
    _check_place(text, edit.op, place, rules.guard)
    changed = text[: place.span.start] + place.content + text[place.span.end :]
    if changed == text:
        raise Refused("the edit changes nothing")
    if rules.guard.kept(changed) != rules.guard.kept(text):
        raise Refused("the edit would change a protected part")
    return changed


def _check_form(op: EditOp, target: str, content: str) -> None:
    if holds_marker(target) or holds_marker(content):
        raise Refused("target or content holds a block marker")
    if op is EditOp.APPEND and target.strip():
        raise Refused("append takes no target")
    if op is not EditOp.APPEND and not target.strip():
        raise Refused("the target is empty")
    if op is EditOp.DELETE and content.strip():
        raise Refused("delete takes no content")
    if op is not EditOp.DELETE and not content.strip():
        raise Refused("the content is empty")
    if not is_storable(content):
        raise Refused("the content holds a NUL or a lone surrogate")


def _place(text: str, op: EditOp, target: str, content: str) -> _Place:
    span = _only_occurrence(text, target)
    if op is EditOp.REPLACE:
        return _Place(span, content)
    if op is EditOp.DELETE:
        return _Place(span, "")
    last = span.end - 1 if target.endswith("\n") else span.end
    line_end = text.find("\n", last)
    point = line_end if line_end >= 0 else len(text)
    return _Place(Span(point, point), _on_own_lines(content))


def _on_own_lines(content: str) -> str:
    return ("" if content.startswith("\n") else "\n") + content.rstrip("\n")


def _only_occurrence(text: str, target: str) -> Span:
    """Return the one place of `target` in the body; overlapping occurrences count too."""
    body_start = front_matter_span(text).end
    first = position = text.find(target, body_start)
    count = 0
    while position >= 0 and count < _COUNT_LIMIT:
        count += 1
        position = text.find(target, position + 1)
    if count != 1:
        shown = f"{count} or more" if count == _COUNT_LIMIT else str(count)
        raise Refused(f"the target occurs {shown} times in the body, it must occur exactly once")
    return Span(first, first + len(target))


def _append_place(text: str, content: str, guard: Guard) -> _Place:
    """Return the end of the free text: before the protected parts that close the file, if any do."""
    point = len(text)
    for span in reversed(guard.spans(text)):
        if text[span.end : point].strip() or span.start == 0:
            break
        point = span.start
    before = text[:point].rstrip("\n")
    point_after_text = max(len(before), front_matter_span(text).end)
    tail = text[point_after_text:point]
    lead = "\n" if point_after_text and not text[:point_after_text].endswith("\n") else ""
    gap = "" if content.startswith("\n") or _continues_list(before, content) else "\n"
    closing = "" if tail.startswith("\n") else "\n"
    return _Place(Span(point_after_text, point_after_text), f"{lead}{gap}{content.rstrip(chr(10))}{closing}")


def _continues_list(before: str, content: str) -> bool:
    last_line = before[before.rfind("\n") + 1 :]
    return last_line.lstrip()[:2] in ("- ", "* ") and content.lstrip()[:2] == last_line.lstrip()[:2]


def _check_place(text: str, op: EditOp, place: _Place, guard: Guard) -> None:
    span = place.span
    for protected in guard.spans(text):
        if span.overlaps(protected) or (span.start == span.end and protected.splits_at(span.start)):
            raise Refused("the place meets a protected part")
    for fence in fence_spans(text):
        _check_fence(text, op, place, fence)


def _check_fence(text: str, op: EditOp, place: _Place, fence: Span) -> None:
    """Refuse an insertion inside a fence, and a change that takes a part of its lines out of it or puts a fence in."""
    span = place.span
    if op in (EditOp.INSERT_AFTER, EditOp.APPEND):
        if fence.splits_at(span.start) or (span.start == len(text) == fence.end and not _closed(text, fence)):
            raise Refused("the insertion point lies inside a code fence")
        return
    whole = span.start <= fence.start and fence.end <= span.end
    if whole or not span.overlaps(fence):
        return
    first_line, last_line = text.find("\n", fence.start), text.rfind("\n", fence.start, fence.end)
    within = first_line < span.start and span.end <= last_line and first_line >= 0
    if not within or fence_spans(place.content):
        raise Refused("the edit cuts into a code fence")


def _closed(text: str, fence: Span) -> bool:
    lines = fence.of(text).split("\n")
    return len(lines) > 1 and lines[-1].strip()[:3] in ("```", "~~~")
