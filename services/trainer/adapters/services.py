"""The agent, the governed models, the gate and the evolver over their gRPC services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import grpc
from videotree.evolver.v1 import evolver_service_pb2, evolver_service_pb2_grpc
from videotree.gate.v1 import gate_service_pb2, gate_service_pb2_grpc, verdict_pb2
from videotree.inference.v1 import agent_pb2, agent_service_pb2, agent_service_pb2_grpc

from services.trainer.adapters.calls import Caller
from services.trainer.adapters.messages import from_message, to_message
from services.trainer.domain.answering import Answer, AnswerJob
from services.trainer.domain.diagnoses import DiagnoseJob, DiagnoseProgress, DiagnoseResult, EvidenceScore
from services.trainer.domain.evolution import (
    AppendixRequest,
    AppendixUpdate,
    Proposal,
    ProposalRequest,
    SlowUpdate,
    SlowUpdateRequest,
)
from services.trainer.domain.gate_round import (
    ArmResolved,
    GateEvent,
    GateRound,
    PairConsumed,
    ProbationPair,
    ProbationReview,
    RoundOutcome,
    VerdictFrozen,
    VerdictParameters,
)
from services.trainer.domain.gate_simulation import FlipRates, Simulation
from services.trainer.domain.ladders import Ladder, LadderCandidate

_MODEL_TIMEOUT_SECONDS = 1800.0
_EVENTS: dict[str, type[GateEvent]] = {
    "arm_resolved": ArmResolved,
    "pair_consumed": PairConsumed,
    "verdict_frozen": VerdictFrozen,
    "outcome": RoundOutcome,
}
_SOLVERS = {"tree": agent_pb2.SOLVER_TREE, "direct": agent_pb2.SOLVER_DIRECT}
_SKILL_MODES = {
    "auto": agent_pb2.SKILL_MODE_AUTO,
    "manual": agent_pb2.SKILL_MODE_MANUAL,
    "none": agent_pb2.SKILL_MODE_NONE,
}


class InferenceAgent:
    """The `Agent` port."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub, self._caller = agent_service_pb2_grpc.AgentServiceStub(channel), caller

    async def answer(self, job: AnswerJob) -> AsyncIterator[Answer]:
        """Each answer after it is durable in the store, in order of completion."""
        request = agent_service_pb2.AnswerQuestionsRequest(
            workspace=job.workspace,
            dataset=job.dataset,
            question_ids=job.question_ids,
            skills=agent_pb2.SkillSet(version=job.skills_version, overrides=job.overrides),
            prompts_version=job.prompts_version,
            run_id=job.run_id,
            salt=job.salt,
            solver=_SOLVERS[job.solver],
            skill_mode=_SKILL_MODES[job.skill_mode],
            limits=agent_pb2.AgentLimits(max_steps=job.max_steps, concurrency=job.concurrency),
            resume=job.resume,
        )
        async for message in self._caller.stream(self._stub.AnswerQuestions(request)):
            yield from_message(message.answer, Answer)


class GateClient:
    """The `Gate` port."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub, self._caller = gate_service_pb2_grpc.GateServiceStub(channel), caller

    async def validate(self, gate_round: GateRound) -> AsyncIterator[GateEvent]:
        """What happens in a round; the last event is its outcome."""
        request = to_message(gate_round, gate_service_pb2.ValidateSkillsRequest)
        async for message in self._caller.stream(self._stub.ValidateSkills(request)):
            kind = message.WhichOneof("event")
            if kind is not None:
                yield from_message(getattr(message, kind), _EVENTS[kind])

    async def build_ladder(
        self,
        namespace: str,
        task_type: str,
        epoch: int,
        step: int,
        candidates: Sequence[LadderCandidate],
        excluded_unit_ids: Sequence[str],
        n_max: int,
    ) -> Ladder:
        """The units in their declared order; `namespace` is part of the permutation's seed."""
        request = gate_service_pb2.BuildLadderRequest(
            workspace=namespace,
            task_type=task_type,
            epoch=epoch,
            step=step,
            candidates=[to_message(each, gate_service_pb2.LadderCandidate) for each in candidates],
            excluded_unit_ids=excluded_unit_ids,
            gate_n_max=n_max,
        )
        answer = await self._caller.unary(self._stub.BuildLadder, request)
        return from_message(answer, Ladder)

    async def review_probation(
        self,
        pairs: Sequence[ProbationPair],
        e_rollback: float,
        probation_units: int,
        parameters: VerdictParameters,
    ) -> ProbationReview:
        """Reviews a provisional accept from its later pairs."""
        request = gate_service_pb2.ReviewProbationRequest(
            pairs=[to_message(each, gate_service_pb2.ProbationPair) for each in pairs],
            e_rollback=e_rollback,
            probation_units=probation_units,
            parameters=to_message(parameters, verdict_pb2.VerdictParameters),
        )
        answer = await self._caller.unary(self._stub.ReviewProbation, request)
        return from_message(answer, ProbationReview)

    async def simulate(
        self, parameters: VerdictParameters, ladder_length: int, gate_count: int, cells: Sequence[FlipRates], seed: int
    ) -> Simulation:
        """Simulates gates of given flip rates."""
        request = gate_service_pb2.SimulateGateRequest(
            parameters=to_message(parameters, verdict_pb2.VerdictParameters),
            ladder_length=ladder_length,
            gate_count=gate_count,
            cells=[to_message(each, gate_service_pb2.FlipRates) for each in cells],
            seed=seed,
        )
        answer = await self._caller.unary(self._stub.SimulateGate, request, _MODEL_TIMEOUT_SECONDS)
        return from_message(answer, Simulation)


class EvolverClient:
    """The `Evolver` port."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub, self._caller = evolver_service_pb2_grpc.EvolverServiceStub(channel), caller

    async def diagnose(self, job: DiagnoseJob) -> AsyncIterator[DiagnoseProgress | DiagnoseResult]:
        """Progress, then the result."""
        request = to_message(job, evolver_service_pb2.DiagnoseRequest)
        async for message in self._caller.stream(self._stub.Diagnose(request)):
            if message.WhichOneof("event") == "progress":
                yield from_message(message.progress, DiagnoseProgress)
            else:
                yield from_message(message.result, DiagnoseResult)

    async def propose(self, request: ProposalRequest) -> Proposal:
        """Proposes edits for one target and applies them."""
        message = to_message(request, evolver_service_pb2.ProposeEditRequest)
        answer = await self._caller.unary(self._stub.ProposeEdit, message, _MODEL_TIMEOUT_SECONDS)
        return from_message(answer, Proposal)

    async def consolidate_appendix(self, request: AppendixRequest) -> AppendixUpdate:
        """Adds reminders to a skill's appendix."""
        message = to_message(request, evolver_service_pb2.ConsolidateAppendixRequest)
        answer = await self._caller.unary(self._stub.ConsolidateAppendix, message, _MODEL_TIMEOUT_SECONDS)
        return from_message(answer, AppendixUpdate)

    async def slow_update(self, request: SlowUpdateRequest) -> SlowUpdate:
        """Writes the momentum block of each skill."""
        message = to_message(request, evolver_service_pb2.ProposeSlowUpdateRequest)
        answer = await self._caller.unary(self._stub.ProposeSlowUpdate, message, _MODEL_TIMEOUT_SECONDS)
        return from_message(answer, SlowUpdate)

    async def score_evidence(
        self, workspace: str, run_id: str, dataset: str, question_ids: Sequence[str]
    ) -> AsyncIterator[EvidenceScore]:
        """Rates the evidence given for a run's answers, blind to right and wrong."""
        request = evolver_service_pb2.ScoreEvidenceRequest(
            workspace=workspace, run_id=run_id, dataset=dataset, question_ids=question_ids
        )
        async for message in self._caller.stream(self._stub.ScoreEvidence(request)):
            yield from_message(message, EvidenceScore)
