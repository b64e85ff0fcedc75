"""A whole new body for a skill (`skill_update_mode: rewrite`), under the same checks as edits."""

from services.evolver.domain.edits import Candidate, CandidateStatus, Edit, EditOp, EditOutcome, EditStatus
from services.evolver.domain.validate import Rules, free_body, validate_candidate
from services.skills import block_spans, front_matter_span, holds_marker, normalise_newlines


def rewrite_body(text: str, body: str, rationale: str, cases: tuple[str, ...], rules: Rules) -> Candidate:
    """Return `text` with its free body replaced; front matter and blocks stay to the byte, the blocks after the body.

    The outcome is recorded as one replace of the whole free body. An empty body means that nothing should change.
    """
    original, new = normalise_newlines(text), normalise_newlines(body).strip("\n")
    edit = Edit(EditOp.REPLACE, free_body(original).strip(), new, rationale, cases)

    def refused(reason: str) -> Candidate:
        return Candidate(text, original, CandidateStatus.SKIPPED, (EditOutcome(edit, EditStatus.REFUSED, reason),))

    if not new.strip():
        return Candidate(text, original, CandidateStatus.SKIPPED, ())
    if holds_marker(new):
        return refused("the body holds a block marker")
    if (leak := rules.leaks.leak_in(new, original)) is not None:
        return refused(f"leak: the body repeats a question: {leak!r}")
    edited = _assembled(original, new)
    if edited == original:
        return refused("the edit changes nothing")
    violations = validate_candidate(original, edited, rules)
    if violations:
        outcome = EditOutcome(edit, EditStatus.REFUSED, "the candidate as a whole was refused")
        return Candidate(text, edited, CandidateStatus.REJECTED, (outcome,), violations)
    return Candidate(edited, edited, CandidateStatus.CANDIDATE, (EditOutcome(edit, EditStatus.APPLIED),))


def _assembled(original: str, body: str) -> str:
    front = front_matter_span(original)
    blocks = [span.of(original) for _, span in block_spans(original) if span.start >= front.end]
    return front.of(original) + "\n\n".join([body, *blocks]) + "\n"
