"""Recognising what was diagnosed or proposed before."""

import difflib
import hashlib
import json

from services.evolver.domain.case import Case
from services.skills import normalise_newlines, text_sha256


def case_fingerprint(case: Case, prompts_sha256: str) -> str:
    """Return the hex SHA-256 of all that a diagnosis depends on.

    That is the question, the prediction, the trace, the skill, and `prompts_sha256`, which stands for the agent's
    prompts and the diagnosis templates.
    """
    question, answered = case.question, case.answered
    parts = [
        [question.question_id, question.text, list(question.options), question.answer],
        [answered.prediction, answered.stop_reason],
        [[step.step, step.tool, dict(step.args), step.output, step.thought] for step in case.trace],
        text_sha256(case.skill_text),
        prompts_sha256,
    ]
    canonical = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def proposal_fingerprint(original: str, edited: str) -> str:
    """Return the hex SHA-256 of what a candidate changes: the lines it takes away and the lines it adds.

    Blank space, the order of independent changes and whatever else the file holds don't matter, so a refused proposal
    is recognised when it comes again in other edits or after another part of the file changed.
    """
    before = normalise_newlines(original).split("\n")
    after = normalise_newlines(edited).split("\n")
    changed = []
    for tag, old_start, old_end, new_start, new_end in difflib.SequenceMatcher(
        None, before, after, False
    ).get_opcodes():
        if tag != "equal":
            changed += [f"-{' '.join(line.split())}" for line in before[old_start:old_end] if line.strip()]
            changed += [f"+{' '.join(line.split())}" for line in after[new_start:new_end] if line.strip()]
    return hashlib.sha256("\n".join(sorted(changed)).encode("utf-8", "surrogatepass")).hexdigest()


def unified_diff(original: str, edited: str, name: str) -> str:
    """Return the unified diff of two texts, empty when they are equal."""
    before, after = normalise_newlines(original).splitlines(), normalise_newlines(edited).splitlines()
    lines = list(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm=""))
    return "\n".join(lines) + "\n" if lines else ""
