"""GateService: translate, await one use case, translate back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc
from videotree.gate.v1 import gate_service_pb2 as pb
from videotree.gate.v1 import gate_service_pb2_grpc

from services.gate.domain.ladder import LadderParameters, build_ladder
from services.gate.domain.probation import ProbationParameters, review_probation
from services.gate.domain.round_spec import RoundOptions
from services.gate.domain.verdict import GateParameters, decide_verdict
from services.gate.rpc import translate
from services.gate.rpc.round_stream import stream_round
from services.gate.rpc.translate_round import round_spec_from
from services.gate.rpc.translate_verdict import parameters_from, verdict_to
from services.gate.use_cases.simulate_gate import simulate_gate
from services.gate.use_cases.validate_skills import ValidateSkills

# Quoted: grpc's classes are generic in their stubs only.
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds where a request says nothing."""

    parameters: GateParameters
    options: RoundOptions
    ladder: LadderParameters
    probation: ProbationParameters


class GateServicer(gate_service_pb2_grpc.GateServiceServicer):
    """Serves rounds and the pure questions around them."""

    def __init__(self, validate: ValidateSkills, defaults: Defaults) -> None:
        self._validate = validate
        self._defaults = defaults

    async def ValidateSkills(  # noqa: N802 - the contract's name
        self,
        request: pb.ValidateSkillsRequest,
        context: Context,
    ) -> AsyncIterator[pb.ValidateSkillsResponse]:
        """Run one round and stream what happens."""
        spec = round_spec_from(request, self._defaults.parameters, self._defaults.options)
        async for message in stream_round(self._validate, spec):
            yield message

    async def DecideVerdict(  # noqa: N802 - the contract's name
        self,
        request: pb.DecideVerdictRequest,
        context: Context,
    ) -> pb.DecideVerdictResponse:
        """Decide for given counts."""
        parameters = parameters_from(request.parameters, self._defaults.parameters)
        verdict = decide_verdict(request.w, request.l, request.n_used, request.n_remaining, parameters)
        return pb.DecideVerdictResponse(verdict=verdict_to(verdict))

    async def BuildLadder(  # noqa: N802 - the contract's name
        self,
        request: pb.BuildLadderRequest,
        context: Context,
    ) -> pb.BuildLadderResponse:
        """Order units into a ladder."""
        seed = translate.ladder_seed_from(request)
        parameters = translate.ladder_parameters_from(request, self._defaults.ladder)
        candidates = translate.candidates_from(request)
        return translate.ladder_to(build_ladder(candidates, request.excluded_unit_ids, seed, parameters))

    async def SimulateGate(  # noqa: N802 - the contract's name
        self,
        request: pb.SimulateGateRequest,
        context: Context,
    ) -> pb.SimulateGateResponse:
        """Simulate gates of given flip rates."""
        spec = translate.simulation_from(request, self._defaults.parameters)
        return translate.simulation_to(await simulate_gate(spec))

    async def ReviewProbation(  # noqa: N802 - the contract's name
        self,
        request: pb.ReviewProbationRequest,
        context: Context,
    ) -> pb.ReviewProbationResponse:
        """Review a provisional accept from its later pairs."""
        defaults = self._defaults
        parameters = translate.probation_parameters_from(request, defaults.probation, defaults.parameters)
        return translate.review_to(review_probation(translate.pairs_from(request), parameters))
