"""Rounds on the wire: the request in, events and outcomes out."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from videotree.gate.v1 import gate_service_pb2, round_pb2

from services.gate.domain.errors import InvalidParameter, InvalidRequest
from services.gate.domain.evidence import e_value
from services.gate.domain.guard import GuardLimits
from services.gate.domain.prefix import EvidenceRow
from services.gate.domain.round_events import (
    ArmResolved,
    Event,
    ObservedUnit,
    PairConsumed,
    RoundOutcome,
    TypeOutcome,
    VerdictFrozen,
)
from services.gate.domain.round_spec import AgentOptions, RoundOptions, RoundSpec, Target, TypeSpec
from services.gate.domain.unit_result import Arm, ArmResult
from services.gate.domain.verdict import GateParameters
from services.gate.rpc.translate_verdict import parameters_from, verdict_to
from services.questions import Unit

_TARGETS = {
    round_pb2.GATE_TARGET_UNSPECIFIED: Target.SKILL,
    round_pb2.GATE_TARGET_SKILL: Target.SKILL,
    round_pb2.GATE_TARGET_PROMPT: Target.PROMPT,
}
_ARMS = {Arm.BASE: round_pb2.ARM_BASE, Arm.CAND: round_pb2.ARM_CAND}
_RESULTS = {
    ArmResult.RIGHT: round_pb2.ARM_RESULT_RIGHT,
    ArmResult.WRONG: round_pb2.ARM_RESULT_WRONG,
    ArmResult.ERROR: round_pb2.ARM_RESULT_INFRA_ERROR,
    ArmResult.UNPARSABLE: round_pb2.ARM_RESULT_INFRA_PARSE,
}


def round_spec_from(
    request: gate_service_pb2.ValidateSkillsRequest, parameters: GateParameters, options: RoundOptions
) -> RoundSpec:
    """The round of a request over the service's defaults. Raises InvalidRequest with the field's path."""
    return RoundSpec(
        workspace=request.workspace,
        run_id=request.run_id,
        epoch=request.epoch,
        step=request.step,
        dataset=request.dataset,
        skills_version=request.skills_version,
        prompts_version=request.prompts_version,
        types=tuple(_type_from(spec, parameters, f"specs[{i}]") for i, spec in enumerate(request.specs)),
        options=_options_from(request.options, options),
        agent=AgentOptions(request.agent.max_steps, request.agent.solver or "tree", request.agent.skill_mode or "auto"),
    )


def _type_from(spec: round_pb2.GateSpec, defaults: GateParameters, path: str) -> TypeSpec:
    if spec.target not in _TARGETS:
        raise InvalidRequest(f"target has no value {spec.target}", field=f"{path}.target")
    return TypeSpec(
        task_type=spec.task_type,
        target_file=spec.target_file,
        candidate_text=spec.candidate_text,
        ladder=tuple(Unit(unit.unit_id, spec.task_type, tuple(unit.question_ids)) for unit in spec.ladder),
        parameters=parameters_from(spec.parameters, defaults, f"{path}.parameters"),
        target=_TARGETS[spec.target],
    )


def _options_from(message: round_pb2.RoundOptions, defaults: RoundOptions) -> RoundOptions:
    return RoundOptions(
        concurrency=message.concurrency or defaults.concurrency,
        cancel_in_flight=message.cancel_in_flight or defaults.cancel_in_flight,
        max_speculation=message.max_speculation if message.HasField("max_speculation") else defaults.max_speculation,
        guard=_guard_from(message, defaults.guard),
        base_salt=_base_salt_from(message, defaults.base_salt),
    )


def _guard_from(message: round_pb2.RoundOptions, defaults: GuardLimits) -> GuardLimits:
    share = message.guard_error_share if message.HasField("guard_error_share") else defaults.max_fault_share
    fewest = message.guard_min_questions if message.HasField("guard_min_questions") else defaults.min_questions
    try:
        return GuardLimits(share, fewest)
    except InvalidParameter as error:
        raise error.under("options") from None


def _base_salt_from(message: round_pb2.RoundOptions, default: str | None) -> str | None:
    if message.base_without_salt:
        return None
    return message.base_salt if message.HasField("base_salt") else default


def event_to(event: Event) -> gate_service_pb2.ValidateSkillsResponse:
    """One message of the stream."""
    match event:
        case ArmResolved():
            return gate_service_pb2.ValidateSkillsResponse(arm_resolved=_arm_to(event))
        case PairConsumed():
            return gate_service_pb2.ValidateSkillsResponse(pair_consumed=_pair_to(event))
        case VerdictFrozen():
            frozen = gate_service_pb2.VerdictFrozen(task_type=event.task_type, verdict=verdict_to(event.verdict))
            return gate_service_pb2.ValidateSkillsResponse(verdict_frozen=frozen)


def outcome_to(outcome: RoundOutcome) -> gate_service_pb2.ValidateSkillsResponse:
    """The last message of the stream."""
    message = gate_service_pb2.RoundOutcome(
        outcomes=[_type_to(one, outcome.peak_in_flight) for one in outcome.outcomes],
        wall_duration=_duration(outcome.wall_seconds),
    )
    return gate_service_pb2.ValidateSkillsResponse(outcome=message)


def _arm_to(event: ArmResolved) -> gate_service_pb2.ArmResolved:
    return gate_service_pb2.ArmResolved(
        task_type=event.task_type,
        unit_id=event.unit_id,
        ladder_rank=event.rank,
        arm=_ARMS[event.arm],
        result=_RESULTS[event.result],
        cached=event.cached,
        after_freeze=event.after_freeze,
    )


def _pair_to(event: PairConsumed) -> gate_service_pb2.PairConsumed:
    return gate_service_pb2.PairConsumed(
        task_type=event.task_type,
        row=_row_to(event.row),
        n_used=event.n_used,
        launched=event.launched,
        n_planned=event.n_planned,
    )


def _row_to(row: EvidenceRow) -> round_pb2.EvidenceRow:
    return round_pb2.EvidenceRow(
        ladder_rank=row.rank,
        unit_id=row.unit_id,
        base_correct=row.base is ArmResult.RIGHT,
        cand_correct=row.cand is ArmResult.RIGHT,
        e_value=e_value(row.log_e),
        w=row.wins,
        l=row.losses,
    )


def _observed_to(unit: ObservedUnit) -> round_pb2.UnitObserved:
    return round_pb2.UnitObserved(
        ladder_rank=unit.rank,
        unit_id=unit.unit_id,
        base=_RESULTS[unit.base] if unit.base else round_pb2.ARM_RESULT_UNSPECIFIED,
        cand=_RESULTS[unit.cand] if unit.cand else round_pb2.ARM_RESULT_UNSPECIFIED,
        consumed=unit.consumed,
        base_cached=unit.base_cached,
    )


def _type_to(outcome: TypeOutcome, peak_in_flight: int) -> round_pb2.GateOutcome:
    return round_pb2.GateOutcome(
        task_type=outcome.task_type,
        verdict=verdict_to(outcome.verdict),
        base_accuracy=outcome.base_accuracy,
        cand_accuracy=outcome.cand_accuracy,
        n_used=outcome.verdict.n_used,
        n_planned=outcome.n_planned,
        excluded=outcome.excluded,
        launched=outcome.launched,
        cache_hits=outcome.cache_hits,
        stop_reason=outcome.verdict.reason,
        evidence=[_row_to(row) for row in outcome.evidence if not row.excluded],
        observed=[_observed_to(unit) for unit in outcome.observed],
        wall_duration=_duration(outcome.wall_seconds),
        base_infra_rate=outcome.base_infra_rate,
        cand_infra_rate=outcome.cand_infra_rate,
        detectable_gain=outcome.detectable_gain,
        base_skill_sha256=outcome.base_skill_sha256,
        cand_skill_sha256=outcome.cand_skill_sha256,
        questions_run=outcome.questions_run,
        model_calls=outcome.usage.model_calls,
        response_cache_hits=outcome.usage.response_cache_hits,
        tokens=outcome.usage.tokens,
        peak_in_flight=peak_in_flight,
    )


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration
