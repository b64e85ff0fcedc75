"""The evolver's RPCs: translate, await one use case, translate back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc
from videotree.evolver.v1 import evolver_service_pb2 as pb
from videotree.evolver.v1 import evolver_service_pb2_grpc

from services.evolver.domain.apply import apply_edits
from services.evolver.domain.errors import InvalidRequest
from services.evolver.domain.validate import Rules, validate_candidate
from services.evolver.rpc.diagnosis_stream import diagnosis_stream
from services.evolver.rpc.metrics import count_proposal
from services.evolver.rpc.translate_diagnosis import job_value
from services.evolver.rpc.translate_edits import (
    appendix_message,
    candidate_message,
    edits_value,
    leaks_value,
    proposal_job,
    proposal_message,
    slow_update_job,
    slow_update_message,
)
from services.evolver.use_cases.consolidate_appendix import ConsolidateAppendix
from services.evolver.use_cases.diagnose_run import DiagnoseRun
from services.evolver.use_cases.ports import Origin
from services.evolver.use_cases.propose_edit import ProposeEdit
from services.evolver.use_cases.propose_slow_update import ProposeSlowUpdate
from services.evolver.use_cases.score_evidence import ScoreEvidence

_MAX_TEXT_CHARS = 1_048_576
_MAX_EDITS = 200

# Quoted: grpc's context is generic in its stubs only.
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


@dataclass(frozen=True, slots=True)
class UseCases:
    """What the servicer serves; `skill_max_chars` bounds the two pure calls."""

    diagnose: DiagnoseRun
    propose: ProposeEdit
    slow_update: ProposeSlowUpdate
    appendix: ConsolidateAppendix
    score: ScoreEvidence
    skill_max_chars: int


class EvolverServicer(evolver_service_pb2_grpc.EvolverServiceServicer):
    """EvolverService on the use cases."""

    def __init__(self, use_cases: UseCases) -> None:
        self._use_cases = use_cases

    async def Diagnose(  # noqa: N802 - this and the other methods are named by the proto
        self, request: pb.DiagnoseRequest, context: Context
    ) -> AsyncIterator[pb.DiagnoseResponse]:
        """Stream progress, then the result."""
        async with aclosing(diagnosis_stream(self._use_cases.diagnose, job_value(request))) as events:
            async for event in events:
                yield event

    async def ProposeEdit(self, request: pb.ProposeEditRequest, context: Context) -> pb.ProposeEditResponse:  # noqa: N802
        """Propose edits and apply them."""
        _check_size("current_text", request.current_text)
        proposal = await self._use_cases.propose.propose(proposal_job(request))
        count_proposal(proposal)
        return proposal_message(proposal)

    async def ApplyEdits(self, request: pb.ApplyEditsRequest, context: Context) -> pb.ApplyEditsResponse:  # noqa: N802
        """Apply edits; pure."""
        _check_size("skill_text", request.skill_text)
        if len(request.edits) > _MAX_EDITS:
            raise InvalidRequest(f"{len(request.edits)} edits, at most {_MAX_EDITS} are taken", field="edits")
        edits = edits_value(request.edits, "edits")
        rules = Rules(self._use_cases.skill_max_chars, leaks=leaks_value(request.leak_guards))
        return candidate_message(await asyncio.to_thread(apply_edits, request.skill_text, edits, rules))

    async def ValidateSkill(self, request: pb.ValidateSkillRequest, context: Context) -> pb.ValidateSkillResponse:  # noqa: N802
        """Check an edited skill against its original; pure."""
        _check_size("original_text", request.original_text)
        _check_size("edited_text", request.edited_text)
        rules = Rules(self._use_cases.skill_max_chars, leaks=leaks_value(request.leak_guards))
        texts = request.original_text, request.edited_text
        violations = await asyncio.to_thread(validate_candidate, *texts, rules)
        return pb.ValidateSkillResponse(violations=map(str, violations))

    async def ProposeSlowUpdate(  # noqa: N802
        self, request: pb.ProposeSlowUpdateRequest, context: Context
    ) -> pb.ProposeSlowUpdateResponse:
        """Write the momentum blocks."""
        for index, skill in enumerate(request.skills):
            _check_size(f"skills[{index}].text", skill.text)
        return slow_update_message(await self._use_cases.slow_update.propose(slow_update_job(request)))

    async def ConsolidateAppendix(  # noqa: N802
        self, request: pb.ConsolidateAppendixRequest, context: Context
    ) -> pb.ConsolidateAppendixResponse:
        """Add reminders and merge a list that is too long."""
        _check_size("skill_text", request.skill_text)
        if request.threshold < 0:
            raise InvalidRequest(f"threshold is {request.threshold}, below 0", field="threshold")
        origin = Origin(request.workspace, request.run_id)
        leaks = leaks_value(request.leak_guards)
        update = await self._use_cases.appendix.update(
            request.skill_text, request.reminders, request.threshold, leaks, origin
        )
        return appendix_message(update)

    async def ScoreEvidence(  # noqa: N802
        self, request: pb.ScoreEvidenceRequest, context: Context
    ) -> AsyncIterator[pb.ScoreEvidenceResponse]:
        """Stream one rating a prediction."""
        question_ids = list(dict.fromkeys(request.question_ids))
        scores = self._use_cases.score.scores(request.workspace, request.run_id, request.dataset, question_ids)
        async with aclosing(scores):
            async for each in scores:
                yield pb.ScoreEvidenceResponse(question_id=each.question_id, score=each.score, why=each.why)


def _check_size(field: str, text: str) -> None:
    if len(text) > _MAX_TEXT_CHARS:
        raise InvalidRequest(f"{field} has {len(text)} characters, at most {_MAX_TEXT_CHARS} are taken", field=field)
