"""Diagnoses and case packs from and to their messages."""

import json
from collections.abc import Mapping
from typing import Any

from videotree.evolver.v1 import case_pb2, evolver_service_pb2

from services.evolver.domain.case_pack import CasePack, PackedCase
from services.evolver.domain.diagnosis import Category, Cause, Diagnosis, Explanation, Tier
from services.evolver.domain.errors import InvalidRequest
from services.evolver.use_cases.diagnose_run import DiagnoseJob, RunDiagnosis

_TIERS = {Tier.T2: case_pb2.TIER_T2, Tier.T1: case_pb2.TIER_T1, Tier.UNCERTAIN: case_pb2.TIER_UNCERTAIN}
_CAUSES = {Cause.DEFECT: case_pb2.CAUSE_DEFECT, Cause.LAPSE: case_pb2.CAUSE_LAPSE}
_CAUSES_READ = {number: cause for cause, number in _CAUSES.items()}


def job_value(request: evolver_service_pb2.DiagnoseRequest) -> DiagnoseJob:
    """Return what to diagnose."""
    return DiagnoseJob(
        request.workspace,
        request.run_id,
        request.dataset,
        tuple(dict.fromkeys(request.question_ids)),
        request.skills_version,
        request.prompts_version,
        request.with_case_packs,
        request.tolerate_degraded,
        frozenset(request.known_fingerprints),
        request.max_steps,
        request.with_pooled_pack,
    )


def result_message(result: RunDiagnosis) -> evolver_service_pb2.DiagnoseResult:
    """Return the last message of a diagnosis."""
    return evolver_service_pb2.DiagnoseResult(
        diagnoses=map(_diagnosis_message, result.diagnoses),
        case_packs=map(_pack_message, result.case_packs),
        right_count=result.right_count,
        wrong_count=result.wrong_count,
        infra_count=result.infra_count,
        degraded_count=result.degraded_count,
        known_count=result.known_count,
        pooled_pack=_pack_message(result.pooled_pack) if result.pooled_pack else None,
    )


def _diagnosis_message(diagnosis: Diagnosis) -> case_pb2.CaseDiagnosis:
    return case_pb2.CaseDiagnosis(
        question_id=diagnosis.question_id,
        unit_id=diagnosis.unit_id,
        task_type=diagnosis.task_type,
        fingerprint=diagnosis.fingerprint,
        tier=_TIERS[diagnosis.tier],
        category=diagnosis.explanation.category.value,
        cause=_CAUSES[diagnosis.explanation.cause],
        degraded=diagnosis.degraded,
        why=diagnosis.explanation.why,
        evidence_json=_json(diagnosis.evidence),
        metrics_json=_json(diagnosis.metrics),
        reminder=diagnosis.explanation.reminder,
    )


def _pack_message(pack: CasePack) -> case_pb2.CasePack:
    return case_pb2.CasePack(
        task_type=pack.task_type,
        target_file=pack.target_file,
        failures=map(_case_message, pack.failures),
        successes=map(_case_message, pack.successes),
        statistics_json=_json(pack.statistics),
        unit_ids=pack.unit_ids,
    )


def _case_message(case: PackedCase) -> case_pb2.Case:
    diagnosis = _diagnosis_message(case.diagnosis) if case.diagnosis else None
    return case_pb2.Case(
        question_id=case.question_id, unit_id=case.unit_id, text=case.text, diagnosis=diagnosis, cut=case.cut
    )


def pack_value(message: case_pb2.CasePack) -> CasePack:
    """Return a case pack that a client sent; raises InvalidRequest naming the field that can't be read."""
    return CasePack(
        message.task_type,
        message.target_file,
        tuple(_case_value(case, f"case_pack.failures[{i}]") for i, case in enumerate(message.failures)),
        tuple(_case_value(case, f"case_pack.successes[{i}]") for i, case in enumerate(message.successes)),
        _statistics(message.statistics_json),
        tuple(message.unit_ids),
    )


def _case_value(message: case_pb2.Case, field: str) -> PackedCase:
    if not message.question_id:
        raise InvalidRequest("a case has no question id", field=f"{field}.question_id")
    diagnosis = _diagnosis_value(message.diagnosis, field) if message.HasField("diagnosis") else None
    return PackedCase(message.question_id, message.unit_id, message.text, diagnosis, message.cut)


def _diagnosis_value(message: case_pb2.CaseDiagnosis, field: str) -> Diagnosis:
    known = [category.value for category in Category]
    if message.category not in known:
        reason = f"{message.category!r} is no category; there are {', '.join(known)}"
        raise InvalidRequest(reason, field=f"{field}.diagnosis.category")
    if message.cause not in _CAUSES_READ:
        raise InvalidRequest("the cause must be DEFECT or LAPSE", field=f"{field}.diagnosis.cause")
    explanation = Explanation(Category(message.category), _CAUSES_READ[message.cause], message.why, message.reminder)
    return Diagnosis(
        message.question_id,
        message.unit_id,
        message.task_type,
        message.fingerprint,
        explanation,
        message.degraded,
        (),
        {},
    )


def _statistics(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"not JSON: {error}", field="case_pack.statistics_json") from error
    if not isinstance(value, dict):
        raise InvalidRequest("must be a JSON object", field="case_pack.statistics_json")
    return value


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
