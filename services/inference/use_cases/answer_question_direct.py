"""The `direct` solver: one call, no tools (AGT-4)."""

from services.inference.domain.agent_loop import SUBMIT_TOOL, StopReason
from services.inference.domain.agent_reply import UnreadableReply, read_object
from services.inference.domain.agent_transcript import EntryKind, TranscriptEntry
from services.inference.domain.chat import ChatResult, Message, Role
from services.inference.domain.prediction import Submission, failed_submission, submission_of
from services.inference.use_cases.answer_setup import AgentServices, AgentSetup
from services.inference.use_cases.metered_model import MeteredModel
from services.questions import Question, normalise_prediction, option_lines


async def solve_direct(
    services: AgentServices,
    setup: AgentSetup,
    model: MeteredModel,
    question: Question,
    transcript: list[TranscriptEntry],
) -> Submission:
    """Asks once. The answer is a JSON object with `answer`, or a bare reply that names an option by itself.

    Raises an InferenceError if the call fails.
    """
    template = setup.templates["agent.direct"]
    prompt = template.render(
        skills=setup.skills_text(question.task_type), question=question.text, options=option_lines(question.options)
    )
    response_format = services.response_format.request_field(template)
    result = await model.ask(Role.AGENT, (Message("user", prompt),), response_format)
    try:
        answer = _answer(result, question)
    except UnreadableReply as fault:
        transcript.append(TranscriptEntry(0, EntryKind.UNPARSABLE, "", {}, str(fault), result.content))
        return failed_submission(StopReason.PARSE_ERROR, str(fault))
    submission = submission_of(answer, question, steps_used=0)
    transcript.append(TranscriptEntry(0, EntryKind.ANSWER, SUBMIT_TOOL, answer, "", submission.reasoning))
    return submission


def _answer(result: ChatResult, question: Question) -> dict[str, object]:
    bare = normalise_prediction(result.content, question.options)
    if bare in question.letters and bare:
        return {"answer": bare}
    answer = read_object(result.content, cut_off=result.finish_reason == "length")
    if "answer" not in answer:
        raise UnreadableReply('the object has no "answer"')
    return answer
