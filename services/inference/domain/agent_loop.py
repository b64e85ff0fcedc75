"""The agent's loop as a pure state machine (AGT-1). It knows nothing of videos, models or databases."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeAlias

from services.inference.domain.agent_reply import Turn, UnreadableReply

SUBMIT_TOOL: Final = "submit_answer"


class StopReason(StrEnum):
    """Why work on a question ended."""

    FINISHED = "finished"
    BUDGET_EXCEEDED = "budget_exceeded"
    PARSE_ERROR = "parse_error"
    ERROR = "error"

    @property
    def is_infra(self) -> bool:
        """Whether the result is missing data, never a wrong answer."""
        return self in (StopReason.PARSE_ERROR, StopReason.ERROR)


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """Bounds of one conversation.

    `max_steps` successful tool calls; `max_unparsable` replies in a row that can't be read; `max_invalid_calls` tool
    calls that could not be carried out, in all. Together they bound the model calls of one question.
    """

    max_steps: int = 20
    max_unparsable: int = 3
    max_invalid_calls: int = 10


@dataclass(frozen=True, slots=True)
class LoopState:
    """Where a conversation stands."""

    steps_used: int = 0
    unparsable_in_row: int = 0
    invalid_calls: int = 0


@dataclass(frozen=True, slots=True)
class CallTool:
    """Carry out the turn's tool call, then ask `after_tool` or `after_invalid_call`."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Submit:
    """The turn submits an answer: the conversation is over, `finished`."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Report:
    """Tell the model what was wrong and let it reply again; `turn` is None if the reply could not be read."""

    fault: str
    turn: Turn | None = None


@dataclass(frozen=True, slots=True)
class Observe:
    """Give the model the tool's output; `step` counts from 1."""

    step: int
    steps_left: int


@dataclass(frozen=True, slots=True)
class Stop:
    """The conversation is over without an answer."""

    reason: StopReason
    detail: str
    turn: Turn | None = None


AfterReply: TypeAlias = CallTool | Submit | Report | Stop


def after_reply(
    state: LoopState, limits: LoopLimits, reply: Turn | UnreadableReply, tools: Collection[str]
) -> tuple[LoopState, AfterReply]:
    """What to do with a reply; `tools` are the names that may be called besides `submit_answer`.

    The answer is no step: after the last step one more reply is read, and anything but an answer ends the loop.
    """
    if isinstance(reply, UnreadableReply):
        return _after_unreadable(state, limits, str(reply))
    readable = replace(state, unparsable_in_row=0)
    if reply.tool == SUBMIT_TOOL:
        if "answer" in reply.args:
            return readable, Submit(reply)
        return after_invalid_call(readable, limits, reply, 'submit_answer needs the argument "answer"')
    if readable.steps_used >= limits.max_steps:
        return readable, Stop(StopReason.BUDGET_EXCEEDED, f"no answer after {limits.max_steps} steps", reply)
    if reply.tool not in tools:
        known = ", ".join([*sorted(tools), SUBMIT_TOOL])
        return after_invalid_call(readable, limits, reply, f"there is no tool {reply.tool[:80]!r}; there are: {known}")
    return readable, CallTool(reply)


def _after_unreadable(state: LoopState, limits: LoopLimits, fault: str) -> tuple[LoopState, Report | Stop]:
    counted = replace(state, unparsable_in_row=state.unparsable_in_row + 1)
    if counted.unparsable_in_row >= limits.max_unparsable:
        detail = f"{counted.unparsable_in_row} replies in a row could not be read; the last one: {fault}"
        return counted, Stop(StopReason.PARSE_ERROR, detail)
    return counted, Report(fault)


def after_tool(state: LoopState, limits: LoopLimits) -> tuple[LoopState, Observe]:
    """The state after a tool call that succeeded, and the numbers its observation carries."""
    counted = replace(state, steps_used=state.steps_used + 1)
    return counted, Observe(counted.steps_used, limits.max_steps - counted.steps_used)


def after_invalid_call(state: LoopState, limits: LoopLimits, turn: Turn, fault: str) -> tuple[LoopState, Report | Stop]:
    """A tool call that could not be carried out costs no step, but an agent that makes nothing else is stopped.

    The reason is `budget_exceeded`, a wrong answer: the replies could be read and the endpoint worked, so a skill
    that leads to such calls must not have its failures excused as missing data.
    """
    counted = replace(state, invalid_calls=state.invalid_calls + 1)
    if counted.invalid_calls > limits.max_invalid_calls:
        detail = f"more than {limits.max_invalid_calls} tool calls could not be carried out; the last one: {fault}"
        return counted, Stop(StopReason.BUDGET_EXCEEDED, detail, turn)
    return counted, Report(fault, turn)
