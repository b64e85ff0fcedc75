"""Tables, keys and messages say the same."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message
from videotree.store.v1 import (
    checkpoint_pb2,
    diagnosis_pb2,
    evaluation_pb2,
    evolution_record_pb2,
    gate_record_pb2,
    llm_call_pb2,
    prediction_pb2,
    run_pb2,
)

from services.store.adapters.tables import Base
from services.store.domain.tables import KEYS, NUMBER_COLUMNS
from services.store.rpc.row_codec import to_message, to_row

_HOLDS: dict[str, type[Message]] = {
    "runs": run_pb2.Run,
    "predictions": prediction_pb2.Prediction,
    "traces": prediction_pb2.Trace,
    "gate_evidence": gate_record_pb2.GateEvidence,
    "quadrant_pairs": gate_record_pb2.QuadrantPair,
    "step_reports": gate_record_pb2.StepReport,
    "evolution_records": evolution_record_pb2.EvolutionRecord,
    "question_metrics": diagnosis_pb2.QuestionMetric,
    "span_evaluations": diagnosis_pb2.SpanEvaluation,
    "diagnosis_traces": diagnosis_pb2.DiagnosisStage,
    "baseline_diagnosis": diagnosis_pb2.Diagnosis,
    "baseline_cache": evaluation_pb2.BaselineResult,
    "dual_metric": evaluation_pb2.DualMetric,
    "holdout_eval": evaluation_pb2.HoldoutEval,
    "holdout_lines": evaluation_pb2.HoldoutLine,
    "gate_pools": evaluation_pb2.UnitEstimate,
    "checkpoints": checkpoint_pb2.Checkpoint,
    "llm_calls": llm_call_pb2.LlmCall,
}


@pytest.mark.parametrize("name", sorted(KEYS))
def test_sto_5_each_table_has_its_natural_key(name: str) -> None:
    key = tuple(column.name for column in Base.metadata.tables[name].primary_key)
    assert key == KEYS[name]
    for column in Base.metadata.tables[name].primary_key:
        assert (column.type.python_type is int) == (column.name in NUMBER_COLUMNS)


def test_no_table_is_without_a_key() -> None:
    assert set(KEYS) == set(Base.metadata.tables)


@pytest.mark.parametrize("name", sorted(_HOLDS))
def test_each_field_of_a_message_has_its_column_and_the_rest_is_the_key(name: str) -> None:
    fields = {field.name for field in _HOLDS[name].DESCRIPTOR.fields}
    columns = {column.name for column in Base.metadata.tables[name].columns}
    assert fields <= columns
    assert columns - fields <= {"run_id", "epoch", "step"}


@pytest.mark.parametrize("name", sorted(_HOLDS))
def test_a_message_of_distinct_values_survives_the_row(name: str) -> None:
    message = _HOLDS[name]()
    for number, field in enumerate(message.DESCRIPTOR.fields, start=1):
        if field.message_type is not None:
            continue
        kind = field.cpp_type
        value: object = number
        if kind == field.CPPTYPE_STRING:
            value = f"text {number}"
        elif kind == field.CPPTYPE_BOOL:
            value = True
        elif kind == field.CPPTYPE_ENUM:
            value = 1
        elif kind in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
            value = number / 8
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)
    assert to_message(type(message), to_row(message)) == message


def test_absent_stays_absent() -> None:
    row = to_row(gate_record_pb2.StepReport(task_type="T"))
    assert row["base_accuracy"] is None
    assert row["wall_duration"] is None
    assert not to_message(gate_record_pb2.StepReport, row).HasField("base_accuracy")
