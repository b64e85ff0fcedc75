"""Every record has the fields of its message, and comes back from it as it went (adapters/messages.py)."""

import dataclasses
import types
from datetime import UTC, datetime
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from videotree.evolver.v1 import evolver_service_pb2 as evolver
from videotree.gate.v1 import gate_service_pb2 as gate
from videotree.gate.v1 import round_pb2, verdict_pb2
from videotree.inference.v1 import agent_pb2, endpoint_pb2
from videotree.inference.v1 import model_service_pb2 as models
from videotree.store.v1 import (
    checkpoint_pb2,
    diagnosis_pb2,
    evaluation_pb2,
    evolution_record_pb2,
    gate_record_pb2,
    library_service_pb2,
    llm_call_pb2,
    pool_pb2,
    prediction_pb2,
    question_pb2,
    run_pb2,
    seed_pb2,
    training_service_pb2,
    version_pb2,
    workspace_pb2,
    workspace_service_pb2,
)

from services.questions import Question
from services.trainer.adapters.messages import from_message, to_message
from services.trainer.domain import (
    answering,
    checkpoint,
    decisions,
    diagnoses,
    endpoints,
    evaluations,
    evolution,
    gate_round,
    gate_simulation,
    ladders,
    pools,
    runs,
    step_rows,
    versions,
    workspaces,
)

PAIRS: list[tuple[type[Any], type[Message]]] = [
    (Question, question_pb2.Question),
    (answering.Answer, agent_pb2.Answer),
    (endpoints.Endpoint, endpoint_pb2.Endpoint),
    (endpoints.CacheStats, models.GetCacheStatsResponse),
    (evolution.AppendixRequest, evolver.ConsolidateAppendixRequest),
    (evolution.AppendixUpdate, evolver.ConsolidateAppendixResponse),
    (diagnoses.DiagnoseJob, evolver.DiagnoseRequest),
    (diagnoses.DiagnoseResult, evolver.DiagnoseResult),
    (diagnoses.DiagnoseProgress, evolver.DiagnoseProgress),
    (diagnoses.EvidenceScore, evolver.ScoreEvidenceResponse),
    (evolution.Proposal, evolver.ProposeEditResponse),
    (evolution.ProposalRequest, evolver.ProposeEditRequest),
    (evolution.SlowUpdate, evolver.ProposeSlowUpdateResponse),
    (evolution.SlowUpdateRequest, evolver.ProposeSlowUpdateRequest),
    (gate_round.ArmResolved, gate.ArmResolved),
    (gate_round.GateOutcome, round_pb2.GateOutcome),
    (gate_round.GateRound, gate.ValidateSkillsRequest),
    (ladders.Ladder, gate.BuildLadderResponse),
    (ladders.LadderCandidate, gate.LadderCandidate),
    (gate_round.PairConsumed, gate.PairConsumed),
    (gate_round.ProbationPair, gate.ProbationPair),
    (gate_round.ProbationReview, gate.ReviewProbationResponse),
    (gate_round.RoundOutcome, gate.RoundOutcome),
    (gate_simulation.Simulation, gate.SimulateGateResponse),
    (gate_round.VerdictFrozen, gate.VerdictFrozen),
    (gate_round.VerdictParameters, verdict_pb2.VerdictParameters),
    (workspaces.BackupCopy, workspace_service_pb2.BackupResponse),
    (runs.CallSummary, llm_call_pb2.LlmCallSummary),
    (checkpoint.Checkpoint, checkpoint_pb2.Checkpoint),
    (decisions.Committed, training_service_pb2.CommitStepResponse),
    (decisions.Committed, training_service_pb2.CommitEpochResponse),
    (pools.Dataset, library_service_pb2.Dataset),
    (diagnoses.Diagnosis, diagnosis_pb2.Diagnosis),
    (evaluations.DualMetric, evaluation_pb2.DualMetric),
    (decisions.EpochDecision, training_service_pb2.CommitEpochRequest),
    (step_rows.EvolutionRecord, evolution_record_pb2.EvolutionRecord),
    (step_rows.EvolutionRecordRow, training_service_pb2.EvolutionRecordRow),
    (step_rows.GateEvidenceRow, training_service_pb2.GateEvidenceRow),
    (evaluations.HoldoutEval, evaluation_pb2.HoldoutEval),
    (evaluations.HoldoutRow, evaluation_pb2.HoldoutLine),
    (workspaces.Manifest, workspace_pb2.Manifest),
    (pools.Pools, pool_pb2.Pools),
    (runs.Prediction, prediction_pb2.Prediction),
    (step_rows.QuadrantPair, gate_record_pb2.QuadrantPair),
    (step_rows.QuadrantPairRow, training_service_pb2.QuadrantPairRow),
    (runs.Run, run_pb2.Run),
    (workspaces.Seed, seed_pb2.Seed),
    (decisions.StepDecision, training_service_pb2.CommitStepRequest),
    (step_rows.StepReport, gate_record_pb2.StepReport),
    (step_rows.StepReportRow, training_service_pb2.StepReportRow),
    (evaluations.UnitEstimate, evaluation_pb2.UnitEstimate),
    (versions.Version, version_pb2.Version),
    (versions.VersionChange, version_pb2.VersionChange),
]


@pytest.mark.parametrize(("record_type", "message_type"), PAIRS, ids=[pair[0].__name__ for pair in PAIRS])
def test_a_record_survives_the_wire(record_type: type[Any], message_type: type[Message]) -> None:
    record = _example(record_type, message_type)
    wire = message_type.FromString(to_message(record, message_type).SerializeToString())
    assert from_message(wire, record_type) == record


@pytest.mark.parametrize(("record_type", "message_type"), PAIRS, ids=[pair[0].__name__ for pair in PAIRS])
def test_an_empty_message_is_read(record_type: type[Any], message_type: type[Message]) -> None:
    assert isinstance(from_message(message_type(), record_type), record_type)


def test_trn_13b_what_was_not_recorded_is_none_and_not_zero() -> None:
    report = from_message(gate_record_pb2.StepReport(task_type="a"), step_rows.StepReport)
    assert (report.e_value, report.endpoint_error_rate, report.wall_seconds) == (None, None, None)


def test_an_unknown_enum_name_is_refused() -> None:
    unit = pools.PoolUnit("u", "a", "v", ("q",), "holdout")
    with pytest.raises(ValueError, match="holdout"):
        to_message(unit, pool_pb2.PoolUnit)


def _example(record_type: type[Any], message_type: type[Message]) -> Any:
    hints = get_type_hints(record_type)
    fields = message_type.DESCRIPTOR.fields_by_name
    values = {}
    for field in dataclasses.fields(record_type):
        descriptor = fields.get(field.name) or fields[f"{field.name.removesuffix('_seconds')}_duration"]
        values[field.name] = _value(hints[field.name], descriptor)
    return record_type(**values)


def _value(hint: Any, descriptor: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    if get_origin(hint) is tuple:
        return (_value(get_args(hint)[0], descriptor),)
    if descriptor.enum_type is not None:
        return (
            descriptor.enum_type.values_by_number[1]
            .name.removeprefix(descriptor.enum_type.values_by_number[0].name.removesuffix("UNSPECIFIED"))
            .lower()
        )
    if dataclasses.is_dataclass(hint):
        return _example(hint, _class_of(descriptor))
    if hint is datetime:
        return datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    simple = {str: "text", int: 7, float: 0.25, bool: True}
    return simple.get(hint, {"key": "value"})


def _class_of(descriptor: Any) -> type[Message]:
    return GetMessageClass(descriptor.message_type)
