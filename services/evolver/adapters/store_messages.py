"""Store messages from and to the evolver's values."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from videotree.store.v1 import diagnosis_pb2, prediction_pb2, question_pb2

from services.evolver.domain.case import Answered
from services.evolver.domain.diagnosis import Finding
from services.evolver.domain.trace import TraceStep, arguments_of
from services.evolver.use_cases.ports import QuestionDetails
from services.questions import Question


def question_value(message: question_pb2.Question) -> Question:
    """Return the question."""
    return Question(
        message.question_id,
        message.video_id,
        message.task_type,
        message.text,
        tuple(message.options),
        message.answer,
        message.unit_id or message.question_id,
    )


def answered_value(message: prediction_pb2.Prediction) -> Answered:
    """Return what diagnosis needs of a prediction."""
    return Answered(
        message.question_id,
        message.prediction,
        message.correct,
        message.stop_reason,
        tuple(message.evidence),
        message.reasoning,
        message.steps_used,
        message.steps_json,
    )


def step_value(message: prediction_pb2.Trace) -> TraceStep:
    """Return a step of a trace."""
    return TraceStep(message.step, message.tool, arguments_of(message.args_json), message.output, message.thought)


def detail_messages(
    run_id: str, details: Sequence[QuestionDetails]
) -> tuple[list[diagnosis_pb2.QuestionMetric], list[diagnosis_pb2.SpanEvaluation], list[diagnosis_pb2.DiagnosisStage]]:
    """Return the rows of the three diagnosis tables."""
    metrics, spans, stages = [], [], []
    for detail in details:
        key = {"run_id": run_id, "question_id": detail.question_id}
        metrics.append(diagnosis_pb2.QuestionMetric(**key, metrics_json=_json(detail.metrics)))
        for finding in detail.findings:
            stages.append(
                diagnosis_pb2.DiagnosisStage(**key, stage=finding.stage, finding_json=_json(_finding(finding)))
            )
            for step, evaluation in finding.spans.items():
                spans.append(diagnosis_pb2.SpanEvaluation(**key, step=step, evaluation_json=_json(evaluation)))
    return metrics, spans, stages


def _finding(finding: Finding) -> dict[str, Any]:
    explanation = finding.explanation
    if explanation is None:
        return {"explains": False, **finding.details}
    return {
        "explains": True,
        "category": explanation.category.value,
        "cause": explanation.cause.value,
        **finding.details,
        "why": explanation.why,
    }


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
