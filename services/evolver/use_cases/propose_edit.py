"""Proposing edits of one target and making a candidate of them (EVO-6, EVO-7, EVO-11, EVO-12)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from services.evolver.domain.apply import apply_edits
from services.evolver.domain.case_pack import CasePack
from services.evolver.domain.edits import Candidate, CandidateStatus, EditOutcome
from services.evolver.domain.errors import InvalidRequest, UnusableTarget
from services.evolver.domain.fingerprint import proposal_fingerprint, unified_diff
from services.evolver.domain.leaks import LeakIndex
from services.evolver.domain.proposal import ProposedBody, ProposedEdits, RejectedProposal, clip, read_body, read_edits
from services.evolver.domain.rewrite import rewrite_body
from services.evolver.domain.targets import TargetKind, UpdateMode, guard_of, template_of, template_values
from services.evolver.domain.validate import Rules
from services.evolver.use_cases.ask_model import Answer, AskModel
from services.evolver.use_cases.ports import ModelRole, Origin
from services.evolver.use_cases.rank_edits import rank_edits
from services.skills import SkillFormatError, marker_faults, normalise_newlines, parse_skill


class ProposalStatus(Enum):
    """What became of a proposal."""

    CANDIDATE = "candidate"
    SKIPPED = "skipped"
    REJECTED = "rejected"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class ProposalJob:
    """What to propose for; `rejected` are earlier refusals, newest first."""

    origin: Origin
    pack: CasePack
    current_text: str
    edit_budget: int
    rejected: tuple[RejectedProposal, ...]
    mode: UpdateMode
    kind: TargetKind
    leaks: LeakIndex


@dataclass(frozen=True, slots=True)
class Proposal:
    """The result: `candidate_text` is empty unless the status is CANDIDATE, `fingerprint` where nothing was changed.

    `ranks` is the order of expected effect as indices into the edits as proposed, empty without ranking.
    """

    status: ProposalStatus
    candidate_text: str = ""
    outcomes: tuple[EditOutcome, ...] = ()
    suggestions: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    rank_clip_triggered: bool = False
    ranks: tuple[int, ...] = ()
    attempts: int = 0
    fingerprint: str = ""
    unified_diff: str = ""


class ProposeEdit:
    """Asks the optimizer for edits, ranks and clips them, applies them, and recognises what was refused before."""

    def __init__(self, ask: AskModel, skill_max_chars: int, shown_rejected: int) -> None:
        self._ask = ask
        self._max_chars = skill_max_chars
        self._shown_rejected = shown_rejected

    async def propose(self, job: ProposalJob) -> Proposal:
        """Return the proposal. Raises InvalidRequest, UnusableTarget, ModelUnavailable."""
        _check(job)
        if job.kind is TargetKind.SKILL and not job.pack.has_defects:
            return Proposal(ProposalStatus.SKIPPED, errors=("no case shows a defect of the skill",))
        rules = Rules(self._max_chars, guard_of(job.kind), job.leaks)
        shown = job.rejected[: self._shown_rejected]
        values = template_values(
            job.kind, job.mode, job.pack, job.current_text, job.edit_budget, shown, self._max_chars
        )
        if job.mode is UpdateMode.REWRITE:
            return await self._rewritten(job, values, rules)
        return await self._patched(job, values, rules)

    async def _patched(self, job: ProposalJob, values: Mapping[str, str], rules: Rules) -> Proposal:
        answer = await self._ask.ask(
            template_of(job.kind, job.mode),
            values,
            ModelRole.EVOLVE,
            job.origin,
            lambda found: read_edits(found, job.pack.case_ids),
        )
        if answer.value is None:
            return _unread(answer)
        edits = answer.value.edits
        order: tuple[int, ...] = tuple(range(len(edits)))
        ranks: tuple[int, ...] = ()
        attempts = answer.attempts
        if len(edits) > job.edit_budget:
            ranking = await rank_edits(self._ask, edits, job.current_text, job.pack, job.edit_budget, job.origin)
            ranks, attempts = ranking.order or (), attempts + ranking.attempts
            order = ranks or order
        kept, clipped = clip(edits, order, job.edit_budget)
        candidate = apply_edits(job.current_text, kept, rules)
        outcomes = (*candidate.outcomes, *clipped)
        return _settled(job, candidate, outcomes, answer.value.suggestions, attempts, bool(clipped), ranks)

    async def _rewritten(self, job: ProposalJob, values: Mapping[str, str], rules: Rules) -> Proposal:
        answer = await self._ask.ask(
            template_of(job.kind, job.mode),
            values,
            ModelRole.EVOLVE,
            job.origin,
            lambda found: read_body(found, job.pack.case_ids),
        )
        if answer.value is None:
            return _unread(answer)
        proposed = answer.value
        candidate = rewrite_body(job.current_text, proposed.body, proposed.rationale, proposed.cases, rules)
        return _settled(job, candidate, candidate.outcomes, proposed.suggestions, answer.attempts, False, ())


def _check(job: ProposalJob) -> None:
    if job.edit_budget < 1:
        raise InvalidRequest(f"edit_budget is {job.edit_budget}, must be at least 1", field="edit_budget")
    if not job.pack.target_file:
        raise InvalidRequest("the case pack names no target file", field="case_pack.target_file")
    if job.mode is UpdateMode.REWRITE and job.kind is not TargetKind.SKILL:
        raise InvalidRequest("only a skill can be rewritten as a whole", field="update_mode")
    faults: Sequence[str] = marker_faults(normalise_newlines(job.current_text))
    if job.kind is TargetKind.SKILL:
        try:
            parse_skill(job.current_text)
        except SkillFormatError as error:
            faults = (*faults, *error.faults)
    if faults:
        raise UnusableTarget(f"{job.pack.target_file}: {'; '.join(faults)}", field="current_text")


def _unread(answer: Answer[ProposedEdits] | Answer[ProposedBody]) -> Proposal:
    return Proposal(ProposalStatus.REJECTED, errors=answer.faults, attempts=answer.attempts)


def _settled(
    job: ProposalJob,
    candidate: Candidate,
    outcomes: tuple[EditOutcome, ...],
    suggestions: tuple[str, ...],
    attempts: int,
    clipped: bool,
    ranks: tuple[int, ...],
) -> Proposal:
    changed = candidate.status is not CandidateStatus.SKIPPED
    fingerprint = proposal_fingerprint(job.current_text, candidate.attempted) if changed else ""
    errors = tuple(str(violation) for violation in candidate.violations)
    status = ProposalStatus(candidate.status.value)
    if status is ProposalStatus.SKIPPED:
        errors = tuple(outcome.reason for outcome in outcomes) or ("the optimizer proposed no edit",)
    if status is ProposalStatus.CANDIDATE and fingerprint in {earlier.fingerprint for earlier in job.rejected}:
        status, errors = ProposalStatus.REPEATED, ("the candidate equals one that was refused",)
    diff = unified_diff(job.current_text, candidate.attempted, job.pack.target_file)
    text = candidate.text if status is ProposalStatus.CANDIDATE else ""
    return Proposal(status, text, outcomes, suggestions, errors, clipped, ranks, attempts, fingerprint, diff)
