"""The agent's conversation about one video: the thin shell around the loop (AGT-1)."""

from collections.abc import Mapping

from services.inference.domain.agent_loop import (
    LoopState,
    Observe,
    Report,
    Stop,
    Submit,
    after_invalid_call,
    after_reply,
    after_tool,
)
from services.inference.domain.agent_reply import Turn, UnreadableReply, read_turn
from services.inference.domain.agent_tool_args import InvalidToolCall
from services.inference.domain.agent_transcript import EntryKind, TranscriptEntry
from services.inference.domain.agent_view import observation, overview_text, video_text
from services.inference.domain.chat import ChatResult, JsonObject, Message, Role
from services.inference.domain.prediction import Submission, failed_submission, submission_of
from services.inference.use_cases.answer_setup import AgentServices, AgentSetup
from services.inference.use_cases.metered_model import MeteredModel
from services.inference.use_cases.tools.tool import Tool
from services.inference.use_cases.tools.toolbox import toolbox
from services.questions import Question, option_lines
from services.video_tree import VideoTree


async def solve_by_tree(
    services: AgentServices,
    setup: AgentSetup,
    model: MeteredModel,
    question: Question,
    transcript: list[TranscriptEntry],
) -> Submission:
    """Walks the tree until the loop ends, filling `transcript` as it goes.

    Raises VideoUnusable for a video without a sound tree, and an InferenceError for a model call that fails.
    """
    loaded = await services.library.tree(question.video_id)
    tools = toolbox(services, setup, model, loaded, question.text)
    opening = _opening(setup, question, loaded.tree)
    conversation = _Conversation(setup, model, question, tools, opening, transcript)
    return await conversation.run(services.response_format.request_field(setup.templates["agent.system"]))


def _opening(setup: AgentSetup, question: Question, tree: VideoTree) -> list[Message]:
    system = setup.templates["agent.system"].render(skills=setup.skills_text(question.task_type))
    first = setup.templates["agent.question"].render(
        question=question.text,
        options=option_lines(question.options),
        video=video_text(tree),
        overview=overview_text(tree),
        max_steps=str(setup.limits.max_steps),
    )
    return [Message("system", system), Message("user", first)]


class _Conversation:
    """Carries out what the loop decides; all decisions are the loop's."""

    def __init__(
        self,
        setup: AgentSetup,
        model: MeteredModel,
        question: Question,
        tools: Mapping[str, Tool],
        messages: list[Message],
        transcript: list[TranscriptEntry],
    ) -> None:
        self._setup = setup
        self._model = model
        self._question = question
        self._tools = tools
        self._messages = messages
        self._transcript = transcript
        self._state = LoopState()

    async def run(self, response_format: JsonObject | None) -> Submission:
        """Turns until there is a submission."""
        while True:
            result = await self._model.ask(Role.AGENT, tuple(self._messages), response_format)
            self._messages.append(Message("assistant", result.content))
            submission = await self._advance(result)
            if submission is not None:
                return submission

    async def _advance(self, result: ChatResult) -> Submission | None:
        self._state, decision = after_reply(self._state, self._setup.limits, _read(result), self._tools.keys())
        match decision:
            case Submit(turn):
                self._note(EntryKind.ANSWER, turn, "")
                return submission_of(turn.args, self._question, self._state.steps_used)
            case Report() | Stop():
                return self._told(decision, result.content)
            case _:
                return await self._call_tool(decision.turn)

    async def _call_tool(self, turn: Turn) -> Submission | None:
        try:
            output = await self._tools[turn.tool](turn.args)
        except InvalidToolCall as fault:
            self._state, decision = after_invalid_call(self._state, self._setup.limits, turn, str(fault))
            return self._told(decision, "")
        self._state, observe = after_tool(self._state, self._setup.limits)
        self._note(EntryKind.OBSERVATION, turn, output)
        self._messages.append(Message("user", _observation(turn, observe, output)))
        return None

    def _told(self, decision: Report | Stop, reply: str) -> Submission | None:
        fault = decision.fault if isinstance(decision, Report) else decision.detail
        kind = EntryKind.UNPARSABLE if decision.turn is None else EntryKind.INVALID
        turn = decision.turn or Turn(reply, "", "", {})
        self._note(kind, turn, fault)
        if isinstance(decision, Stop):
            return failed_submission(decision.reason, decision.detail, self._state.steps_used)
        self._messages.append(Message("user", self._setup.templates["agent.fault"].render(fault=fault)))
        return None

    def _note(self, kind: EntryKind, turn: Turn, output: str) -> None:
        entry = TranscriptEntry(len(self._transcript), kind, turn.tool, turn.args, output, turn.thought)
        self._transcript.append(entry)


def _read(result: ChatResult) -> Turn | UnreadableReply:
    try:
        return read_turn(result.content, cut_off=result.finish_reason == "length")
    except UnreadableReply as fault:
        return fault


def _observation(turn: Turn, observe: Observe, output: str) -> str:
    return observation(turn.tool, observe.step, observe.steps_left, output)
