"""The gate over its gRPC service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import grpc
from videotree.gate.v1 import gate_service_pb2, gate_service_pb2_grpc, verdict_pb2

from services.trainer.adapters.calls import Caller
from services.trainer.adapters.messages import from_message, to_message
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
