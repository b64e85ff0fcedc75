"""Verdicts and their parameters on the wire."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

from videotree.gate.v1 import verdict_pb2

from services.gate.domain.errors import InvalidParameter
from services.gate.domain.evidence import Mixture
from services.gate.domain.verdict import Decision, GateParameters, Verdict

_MIXTURES = {verdict_pb2.MIXTURE_UNIFORM: Mixture.UNIFORM, verdict_pb2.MIXTURE_ONE_SIDED: Mixture.ONE_SIDED}
_MIXTURE_NUMBERS = {mixture: number for number, mixture in _MIXTURES.items()}
_Threshold = Literal["e_confirm", "e_provisional", "w_net_min", "delta_min", "lambda_dir", "p1"]
_THRESHOLDS: tuple[_Threshold, ...] = get_args(_Threshold)


def parameters_from(
    message: verdict_pb2.VerdictParameters, defaults: GateParameters, path: str = "parameters"
) -> GateParameters:
    """The parameters of a request over the service's defaults. Raises InvalidParameter with the field's path."""
    given: dict[str, Any] = {name: getattr(message, name) for name in _THRESHOLDS if message.HasField(name)}
    if message.mixture != verdict_pb2.MIXTURE_UNSPECIFIED:
        if message.mixture not in _MIXTURES:
            raise InvalidParameter(f"{path}.mixture", message.mixture, "a known mixture")
        given["mixture"] = _MIXTURES[message.mixture]
    try:
        return replace(defaults, **given)
    except InvalidParameter as error:
        raise error.under(path) from None


def parameters_to(parameters: GateParameters) -> verdict_pb2.VerdictParameters:
    """All parameters, set."""
    thresholds: dict[str, Any] = {name: getattr(parameters, name) for name in _THRESHOLDS}
    return verdict_pb2.VerdictParameters(mixture=_MIXTURE_NUMBERS[parameters.mixture], **thresholds)


def verdict_to(verdict: Verdict) -> verdict_pb2.Verdict:
    """The verdict with every figure."""
    return verdict_pb2.Verdict(
        decision=_decision_to(verdict.decision),
        reason=verdict.reason,
        e_value=verdict.e,
        log_e_value=verdict.log_e,
        w=verdict.wins,
        l=verdict.losses,
        n_used=verdict.n_used,
        n_remaining=verdict.n_remaining,
        pessimistic_losses=verdict.stability.pessimistic_losses,
        cand_parse_errors=verdict.stability.cand.errors,
        cand_questions=verdict.stability.cand.questions,
        max_parse_error_share=verdict.stability.max_share,
        parameters=parameters_to(verdict.parameters),
        rule_version=verdict.rule_version,
    )


def _decision_to(decision: Decision) -> verdict_pb2.Decision.ValueType:
    return verdict_pb2.Decision.Value(f"DECISION_{decision.value}")
