"""Edits, proposals, appendix and slow updates from and to their messages."""

from collections.abc import Iterable

from videotree.evolver.v1 import edit_pb2, evolver_service_pb2

from services.evolver.domain.edits import Candidate, CandidateStatus, Edit, EditOp, EditOutcome, EditStatus
from services.evolver.domain.errors import InvalidRequest
from services.evolver.domain.leaks import LeakIndex
from services.evolver.domain.momentum import UnitChange
from services.evolver.domain.proposal import RejectedProposal
from services.evolver.domain.targets import TargetKind, UpdateMode
from services.evolver.rpc.translate_diagnosis import pack_value
from services.evolver.use_cases.consolidate_appendix import AppendixUpdate
from services.evolver.use_cases.ports import Origin
from services.evolver.use_cases.propose_edit import Proposal, ProposalJob, ProposalStatus
from services.evolver.use_cases.propose_slow_update import SlowUpdate, SlowUpdateJob

_OPS = {
    EditOp.REPLACE: edit_pb2.EDIT_OP_REPLACE,
    EditOp.INSERT_AFTER: edit_pb2.EDIT_OP_INSERT_AFTER,
    EditOp.DELETE: edit_pb2.EDIT_OP_DELETE,
    EditOp.APPEND: edit_pb2.EDIT_OP_APPEND,
}
_OPS_READ = {number: op for op, number in _OPS.items()}
_STATUSES = {
    EditStatus.APPLIED: edit_pb2.EDIT_STATUS_APPLIED,
    EditStatus.REFUSED: edit_pb2.EDIT_STATUS_REFUSED,
    EditStatus.CLIPPED: edit_pb2.EDIT_STATUS_CLIPPED,
}
_PROPOSALS = {
    ProposalStatus.CANDIDATE: evolver_service_pb2.PROPOSAL_STATUS_CANDIDATE,
    ProposalStatus.SKIPPED: evolver_service_pb2.PROPOSAL_STATUS_SKIPPED,
    ProposalStatus.REJECTED: evolver_service_pb2.PROPOSAL_STATUS_REJECTED,
    ProposalStatus.REPEATED: evolver_service_pb2.PROPOSAL_STATUS_REPEATED,
}
_KINDS = {
    evolver_service_pb2.TARGET_KIND_UNSPECIFIED: TargetKind.SKILL,
    evolver_service_pb2.TARGET_KIND_SKILL: TargetKind.SKILL,
    evolver_service_pb2.TARGET_KIND_SYSTEM: TargetKind.SYSTEM,
    evolver_service_pb2.TARGET_KIND_TOOL: TargetKind.TOOL,
}
_MODES = {
    evolver_service_pb2.UPDATE_MODE_UNSPECIFIED: UpdateMode.PATCH,
    evolver_service_pb2.UPDATE_MODE_PATCH: UpdateMode.PATCH,
    evolver_service_pb2.UPDATE_MODE_REWRITE: UpdateMode.REWRITE,
}


def leaks_value(guards: Iterable[evolver_service_pb2.LeakGuard]) -> LeakIndex:
    """Return the index over the questions that must not leak."""
    return LeakIndex.of((guard.question_text, guard.answer_text) for guard in guards)


def edits_value(messages: Iterable[edit_pb2.Edit], field: str) -> tuple[Edit, ...]:
    """Return the edits; raises InvalidRequest naming the one whose op isn't set."""
    found = []
    for index, message in enumerate(messages):
        if message.op not in _OPS_READ:
            raise InvalidRequest("the op must be set", field=f"{field}[{index}].op")
        op = _OPS_READ[message.op]
        found.append(Edit(op, message.target, message.content, message.rationale, tuple(message.cases)))
    return tuple(found)


def proposal_job(request: evolver_service_pb2.ProposeEditRequest) -> ProposalJob:
    """Return what to propose for; raises InvalidRequest naming the field that can't be read."""
    for field, value, known in (
        ("target_kind", request.target_kind, _KINDS),
        ("update_mode", request.update_mode, _MODES),
    ):
        if value not in known:
            raise InvalidRequest(f"{field} {value} is unknown", field=field)
    rejected = tuple(
        RejectedProposal(item.fingerprint, edits_value(item.edits, f"rejected[{index}].edits"), item.reason)
        for index, item in enumerate(request.rejected)
    )
    return ProposalJob(
        Origin(request.workspace, request.run_id),
        pack_value(request.case_pack),
        request.current_text,
        request.edit_budget,
        rejected,
        _MODES[request.update_mode],
        _KINDS[request.target_kind],
        leaks_value(request.leak_guards),
    )


def proposal_message(proposal: Proposal) -> evolver_service_pb2.ProposeEditResponse:
    """Return a proposal's message."""
    return evolver_service_pb2.ProposeEditResponse(
        status=_PROPOSALS[proposal.status],
        candidate_text=proposal.candidate_text,
        edits=map(_outcome_message, proposal.outcomes),
        suggestions=map(_storable, proposal.suggestions),
        errors=map(_storable, proposal.errors),
        rank_clip_triggered=proposal.rank_clip_triggered,
        ranks=proposal.ranks,
        attempts=proposal.attempts,
        fingerprint=proposal.fingerprint,
        unified_diff=_storable(proposal.unified_diff),
    )


def candidate_message(candidate: Candidate) -> evolver_service_pb2.ApplyEditsResponse:
    """Return the result of applying edits."""
    return evolver_service_pb2.ApplyEditsResponse(
        text=candidate.text,
        results=map(_outcome_message, candidate.outcomes),
        violations=[_storable(str(violation)) for violation in candidate.violations],
        accepted=candidate.status is CandidateStatus.CANDIDATE,
    )


def _outcome_message(outcome: EditOutcome) -> edit_pb2.EditResult:
    edit = outcome.edit
    message = edit_pb2.Edit(
        op=_OPS[edit.op],
        target=_storable(edit.target),
        content=_storable(edit.content),
        rationale=_storable(edit.rationale),
        cases=map(_storable, edit.cases),
    )
    return edit_pb2.EditResult(edit=message, status=_STATUSES[outcome.status], reason=_storable(outcome.reason))


def slow_update_job(request: evolver_service_pb2.ProposeSlowUpdateRequest) -> SlowUpdateJob:
    """Return what the slow update works on; raises InvalidRequest for a skill named twice."""
    skills = {skill.name: skill.text for skill in request.skills}
    if len(skills) != len(request.skills):
        raise InvalidRequest("a skill is named twice", field="skills")
    changes = tuple(
        UnitChange(unit.unit_id, unit.task_type, unit.earlier_correct, unit.later_correct, unit.summary)
        for unit in request.changes
    )
    origin = Origin(request.workspace, request.run_id)
    return SlowUpdateJob(origin, skills, changes, tuple(request.history), leaks_value(request.leak_guards))


def slow_update_message(update: SlowUpdate) -> evolver_service_pb2.ProposeSlowUpdateResponse:
    """Return a slow update's message."""
    return evolver_service_pb2.ProposeSlowUpdateResponse(
        skills=[evolver_service_pb2.SkillText(name=name, text=text) for name, text in update.skills.items()],
        errors=map(_storable, update.errors),
        attempts=update.attempts,
    )


def appendix_message(update: AppendixUpdate) -> evolver_service_pb2.ConsolidateAppendixResponse:
    """Return an appendix update's message."""
    return evolver_service_pb2.ConsolidateAppendixResponse(
        text=update.text,
        added_count=update.added_count,
        consolidated=update.consolidated,
        errors=map(_storable, update.errors),
    )


def _storable(text: str) -> str:
    """Lone surrogates come out of escapes in a model's JSON, and no message can carry them."""
    return text.encode("utf-8", "replace").decode("utf-8")
