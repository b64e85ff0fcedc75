"""AGT-1: the loop as a state machine."""

import pytest

from services.inference.domain.agent_loop import (
    CallTool,
    LoopLimits,
    LoopState,
    Observe,
    Report,
    Stop,
    StopReason,
    Submit,
    after_invalid_call,
    after_reply,
    after_tool,
)
from services.inference.domain.agent_reply import Turn, UnreadableReply

LIMITS = LoopLimits(max_steps=2, max_unparsable=3, max_invalid_calls=2)
VIEW = Turn("r", "p", "view", {})
TOOLS = {"view"}


def test_agt_1_a_known_tool_is_called_and_counts_when_it_succeeded() -> None:
    state, decision = after_reply(LoopState(), LIMITS, VIEW, TOOLS)
    assert decision == CallTool(VIEW)
    assert state.steps_used == 0
    assert after_tool(state, LIMITS) == (LoopState(steps_used=1), Observe(step=1, steps_left=1))


def test_agt_1_an_answer_finishes_at_any_time_even_after_the_last_step() -> None:
    answer = Turn("", "", "submit_answer", {"answer": None})
    assert after_reply(LoopState(), LIMITS, answer, TOOLS)[1] == Submit(answer)
    assert after_reply(LoopState(steps_used=2), LIMITS, answer, TOOLS)[1] == Submit(answer)


def test_agt_1_no_answer_after_the_last_step_is_budget_exceeded() -> None:
    _, decision = after_reply(LoopState(steps_used=2), LIMITS, VIEW, TOOLS)
    assert isinstance(decision, Stop)
    assert decision.reason is StopReason.BUDGET_EXCEEDED


def test_agt_1_the_third_unreadable_reply_in_a_row_is_a_parse_error() -> None:
    state, fault = LoopState(), UnreadableReply("no JSON")
    for _ in range(2):
        state, decision = after_reply(state, LIMITS, fault, TOOLS)
        assert decision == Report("no JSON")
    _, decision = after_reply(state, LIMITS, fault, TOOLS)
    assert isinstance(decision, Stop)
    assert (decision.reason, decision.turn) == (StopReason.PARSE_ERROR, None)


def test_agt_1_a_readable_reply_starts_the_count_of_unreadable_ones_anew() -> None:
    state = LoopState(unparsable_in_row=2)
    state, _ = after_reply(state, LIMITS, VIEW, TOOLS)
    assert state.unparsable_in_row == 0


@pytest.mark.parametrize("turn", [Turn("", "", "fly", {}), Turn("", "", "submit_answer", {"letter": "B"})])
def test_agt_1_an_invalid_call_is_reported_and_costs_no_step(turn: Turn) -> None:
    state, decision = after_reply(LoopState(steps_used=1), LIMITS, turn, TOOLS)
    assert isinstance(decision, Report)
    assert (state.steps_used, state.invalid_calls) == (1, 1)


def test_agt_1_invalid_calls_are_bounded_and_then_a_wrong_answer() -> None:
    state = LoopState()
    for _ in range(2):
        state, decision = after_invalid_call(state, LIMITS, VIEW, "no such node")
        assert decision == Report("no such node", VIEW)
    _, decision = after_invalid_call(state, LIMITS, VIEW, "no such node")
    assert isinstance(decision, Stop)
    assert decision.reason is StopReason.BUDGET_EXCEEDED
    assert not decision.reason.is_infra


def test_agt_1_only_errors_and_parse_errors_are_missing_data() -> None:
    assert [reason.value for reason in StopReason if reason.is_infra] == ["parse_error", "error"]
