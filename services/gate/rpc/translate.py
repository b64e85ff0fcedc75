"""Ladders, simulations and probation on the wire."""

from __future__ import annotations

from videotree.gate.v1 import gate_service_pb2, round_pb2

from services.gate.domain.errors import InvalidParameter, InvalidRequest
from services.gate.domain.evidence import e_value
from services.gate.domain.ladder import Ladder, LadderCandidate, LadderParameters, LadderSeed, Rung
from services.gate.domain.probation import Pair, ProbationDecision, ProbationParameters, ProbationReview
from services.gate.domain.simulation import FlipRates
from services.gate.domain.unit_result import ArmResult
from services.gate.domain.verdict import Decision, GateParameters
from services.gate.rpc.translate_verdict import parameters_from
from services.gate.use_cases.simulate_gate import Cell, Simulation, SimulationSpec

DEFAULT_LADDER_LENGTH = 60
DEFAULT_GATE_COUNT = 20_000


def ladder_seed_from(request: gate_service_pb2.BuildLadderRequest) -> LadderSeed:
    """What the permutation depends on. Raises InvalidRequest."""
    for name in ("workspace", "task_type"):
        if not getattr(request, name):
            raise InvalidRequest(f"{name} must not be empty", field=name)
    for name in ("epoch", "step"):
        if getattr(request, name) < 0:
            raise InvalidParameter(name, getattr(request, name), "at least 0")
    return LadderSeed(request.workspace, request.task_type, request.epoch, request.step)


def ladder_parameters_from(
    request: gate_service_pb2.BuildLadderRequest, defaults: LadderParameters
) -> LadderParameters:
    """How the ladder is built, over the service's defaults. Raises InvalidParameter."""
    return LadderParameters(
        request.gate_n_max or defaults.n_max,
        request.gate_p_low if request.HasField("gate_p_low") else defaults.p_low,
        request.gate_p_high if request.HasField("gate_p_high") else defaults.p_high,
    )


def candidates_from(request: gate_service_pb2.BuildLadderRequest) -> list[LadderCandidate]:
    """The units that may go into the ladder. Raises InvalidRequest with the field's path."""
    return [_candidate_from(candidate, f"candidates[{i}]") for i, candidate in enumerate(request.candidates)]


def _candidate_from(message: gate_service_pb2.LadderCandidate, path: str) -> LadderCandidate:
    if not message.unit.unit_id:
        raise InvalidRequest("unit_id must not be empty", field=f"{path}.unit.unit_id")
    if not message.unit.question_ids:
        raise InvalidRequest("a unit has at least one question", field=f"{path}.unit.question_ids")
    try:
        return LadderCandidate(
            message.unit.unit_id,
            tuple(message.unit.question_ids),
            message.estimate if message.HasField("estimate") else None,
            message.baseline_right_count,
            message.baseline_count,
        )
    except InvalidParameter as error:
        raise error.under(path) from None


def ladder_to(ladder: Ladder) -> gate_service_pb2.BuildLadderResponse:
    """The ladder in its declared order."""
    return gate_service_pb2.BuildLadderResponse(
        rungs=[_rung_to(rung) for rung in ladder.rungs],
        excluded_count=ladder.excluded_count,
        cut_count=ladder.cut_count,
    )


def _rung_to(rung: Rung) -> gate_service_pb2.LadderRung:
    unit = round_pb2.LadderUnit(unit_id=rung.candidate.unit_id, question_ids=rung.candidate.question_ids)
    return gate_service_pb2.LadderRung(unit=unit, estimate=rung.estimate, bin=rung.bin)


def simulation_from(request: gate_service_pb2.SimulateGateRequest, defaults: GateParameters) -> SimulationSpec:
    """What is to be simulated. Raises InvalidParameter with the field's path."""
    return SimulationSpec(
        parameters_from(request.parameters, defaults),
        request.ladder_length or DEFAULT_LADDER_LENGTH,
        request.gate_count or DEFAULT_GATE_COUNT,
        tuple(_rates_from(cell, f"cells[{i}]") for i, cell in enumerate(request.cells)),
        request.seed,
    )


def _rates_from(message: gate_service_pb2.FlipRates, path: str) -> FlipRates:
    try:
        return FlipRates(message.win, message.loss)
    except InvalidParameter as error:
        raise error.under(path) from None


def simulation_to(simulation: Simulation) -> gate_service_pb2.SimulateGateResponse:
    """What was seen in each cell."""
    return gate_service_pb2.SimulateGateResponse(
        cells=[_cell_to(cell) for cell in simulation.cells], detectable_gain=simulation.detectable_gain
    )


def _cell_to(cell: Cell) -> gate_service_pb2.SimulatedCell:
    return gate_service_pb2.SimulatedCell(
        rates=gate_service_pb2.FlipRates(win=cell.rates.win, loss=cell.rates.loss),
        confirmed_share=cell.shares[Decision.ACCEPT_CONFIRMED],
        provisional_share=cell.shares[Decision.ACCEPT_PROVISIONAL],
        direction_share=cell.shares[Decision.REJECT_DIRECTION],
        futile_share=cell.shares[Decision.REJECT_FUTILE],
        exhausted_share=cell.shares[Decision.REJECT_EXHAUSTED],
        mean_units=cell.mean_units,
        accept_standard_error=cell.accept_standard_error,
    )


def probation_parameters_from(
    request: gate_service_pb2.ReviewProbationRequest, defaults: ProbationParameters, gate: GateParameters
) -> ProbationParameters:
    """The bars of the review, over the service's defaults. Raises InvalidParameter with the field's path."""
    verdict = parameters_from(request.parameters, gate)
    return ProbationParameters(
        verdict.mixture,
        request.e_rollback if request.HasField("e_rollback") else defaults.e_rollback,
        verdict.e_confirm,
        request.probation_units if request.HasField("probation_units") else defaults.probation_units,
    )


def pairs_from(request: gate_service_pb2.ReviewProbationRequest) -> list[Pair]:
    """The pairs in the order in which they were declared."""
    return [
        Pair(pair.unit_id, _result(pair.predecessor_correct), _result(pair.current_correct)) for pair in request.pairs
    ]


def _result(correct: bool) -> ArmResult:
    return ArmResult.RIGHT if correct else ArmResult.WRONG


def review_to(review: ProbationReview) -> gate_service_pb2.ReviewProbationResponse:
    """The review with its figures."""
    return gate_service_pb2.ReviewProbationResponse(
        decision=_probation_decision_to(review.decision),
        reason=review.reason,
        w=review.wins,
        l=review.losses,
        n_used=review.n_used,
        e_confirm_value=e_value(review.log_e_for),
        e_rollback_value=e_value(review.log_e_against),
    )


def _probation_decision_to(decision: ProbationDecision) -> gate_service_pb2.ProbationDecision.ValueType:
    return gate_service_pb2.ProbationDecision.Value(f"PROBATION_DECISION_{decision.value}")
