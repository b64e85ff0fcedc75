"""Answers as the store's messages, and back."""

from videotree.store.v1 import prediction_pb2, question_pb2

from services.inference.domain.agent_loop import StopReason
from services.inference.domain.agent_transcript import bounded, steps_json
from services.inference.domain.prediction import AnswerRecord, Spent, Submission
from services.questions import Question, storable_text


def question_value(message: question_pb2.Question) -> Question:
    """The question of a message."""
    return Question(
        question_id=message.question_id,
        video_id=message.video_id,
        task_type=message.task_type,
        text=message.text,
        options=tuple(message.options),
        answer=message.answer,
        unit_id=message.unit_id or message.question_id,
    )


def prediction_message(record: AnswerRecord) -> prediction_pb2.Prediction:
    """The prediction row of a record. Raises ValueError for text that no message can hold."""
    question, submission, spent = record.question, record.submission, record.spent
    return prediction_pb2.Prediction(
        run_id=record.run_id,
        question_id=question.question_id,
        video_id=question.video_id,
        task_type=question.task_type,
        unit_id=question.unit_id,
        prediction=submission.prediction,
        answer=question.answer,
        correct=record.correct,
        evidence=submission.evidence,
        reasoning=submission.reasoning,
        steps_used=submission.steps_used,
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
        model_calls=spent.model_calls,
        cache_hits=spent.cache_hits,
        stop_reason=submission.stop_reason.value,
        error_detail=submission.error_detail,
        steps_json=steps_json(record.transcript),
    )


def trace_messages(record: AnswerRecord) -> list[prediction_pb2.Trace]:
    """One trace row for each reply of the agent."""
    return [
        prediction_pb2.Trace(
            run_id=record.run_id,
            question_id=record.question.question_id,
            step=entry.step,
            tool=storable_text(entry.tool),
            args_json=entry.args_json,
            output=entry.stored_output,
            thought=bounded(entry.thought),
        )
        for entry in record.transcript
    ]


def record_value(message: prediction_pb2.Prediction, question: Question) -> AnswerRecord:
    """The record of a stored prediction, without its transcript."""
    submission = Submission(
        StopReason(message.stop_reason),
        prediction=message.prediction,
        evidence=tuple(message.evidence),
        reasoning=message.reasoning,
        error_detail=message.error_detail,
        steps_used=message.steps_used,
    )
    spent = Spent(message.model_calls, message.cache_hits, message.prompt_tokens, message.completion_tokens)
    return AnswerRecord(message.run_id, question, submission, spent)
