"""AGT-1, INF-8: agents wait out a short outage together, and give up together on a long one."""

import asyncio
import time

from services.inference.adapters.bm25_search import Bm25Search
from services.inference.domain.chat import ChatRequest
from services.inference.domain.errors import EndpointsUnavailable, UpstreamTransient
from services.inference.domain.outcome import Outcome
from services.inference.use_cases.answer_questions import AnswerQuestions, AnswerRequest
from services.inference.use_cases.answer_setup import AgentServices, ResponseFormat, SolverKind
from services.inference.use_cases.patience import Patience
from services.runtime.bundled import bundled_path
from services.templates import parse_template
from tests.builders.videos import question
from tests.fakes.in_memory_answering import InMemoryAnswering
from tests.fakes.scripted_model import Reply, ScriptedModel, acts

_ANSWER = '{"answer": "B"}'


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def patience(clock: Clock, seconds: float = 30.0, draw: float = 0.0) -> Patience:
    return Patience(seconds, clock, lambda: draw)


def test_a_refusal_is_waited_for_as_long_as_it_says() -> None:
    clock = Clock()
    assert patience(clock).wait_after(10.0, None) == 10.0
    assert patience(clock, draw=0.8).wait_after(10.0, None) == 12.0
    assert patience(clock).wait_after(0.0, None) == 0.2


def test_all_waiting_counts_from_the_first_refusal_of_an_outage() -> None:
    clock = Clock()
    shared = patience(clock)
    assert shared.wait_after(10.0, None) == 10.0
    clock.now += 15
    assert shared.wait_after(10.0, None) == 10.0
    clock.now += 10
    assert shared.wait_after(10.0, None) is None


def test_an_answer_ends_the_outage_and_so_does_a_long_silence() -> None:
    clock = Clock()
    shared = patience(clock)
    for _ in range(3):
        shared.wait_after(10.0, None)
        clock.now += 14
    assert shared.wait_after(10.0, None) is None
    shared.answered()
    assert shared.wait_after(10.0, None) == 10.0
    clock.now += 31
    assert shared.wait_after(10.0, None) == 10.0


def test_nobody_waits_past_the_deadline_or_without_patience() -> None:
    clock = Clock()
    assert patience(clock).wait_after(10.0, clock.now + 9) is None
    assert patience(clock, seconds=0.0).wait_after(0.0, None) is None


async def _answers(reply: object, seconds: float, count: int = 20) -> tuple[list[str], float]:
    store = InMemoryAnswering([question(f"q{number}", video_id="") for number in range(count)])
    shared = Patience(seconds, asyncio.get_running_loop().time, lambda: 0.5)
    model = ScriptedModel(reply)  # type: ignore[arg-type]
    services = AgentServices(model, store, store, Bm25Search(), 2_000, ResponseFormat.NONE, shared)
    request = AnswerRequest("w", "d", tuple(store.known), "r", "v1", "v1", 4, solver=SolverKind.DIRECT)
    started = time.monotonic()
    reasons = [answered.record.submission.stop_reason.value async for answered in AnswerQuestions(services)(request)]
    return reasons, time.monotonic() - started


async def test_agt_1_a_short_outage_costs_no_question() -> None:
    began = time.monotonic()

    def reply(request: ChatRequest) -> Reply:
        if time.monotonic() - began < 0.5:
            return EndpointsUnavailable("open", wait_seconds=0.2)
        return '{"answer": "B"}'

    reasons, _ = await _answers(reply, seconds=5.0)
    assert reasons == ["finished"] * 20


async def test_agt_1_a_long_outage_fails_all_questions_in_one_patience() -> None:
    reasons, seconds = await _answers([EndpointsUnavailable("open", wait_seconds=0.2)], seconds=0.6)
    assert reasons == ["error"] * 20
    assert seconds < 1.5


def _transient(code: str | None) -> UpstreamTransient:
    return UpstreamTransient("llm: ConnectError", endpoint="llm", outcome=Outcome.TRANSIENT, code=code)


async def test_agt_1_a_call_whose_connections_failed_is_made_again_until_the_breaker_speaks() -> None:
    replies = iter([_transient(None), _transient(None), EndpointsUnavailable("open", wait_seconds=0.2), _ANSWER])
    reasons, _ = await _answers(lambda _: next(replies), seconds=5.0, count=1)
    assert reasons == ["finished"]
    reasons, _ = await _answers([_transient(None)], seconds=5.0, count=1)
    assert reasons == ["error"]


async def test_agt_1_an_endpoint_that_answers_with_an_error_is_not_waited_for() -> None:
    replies = iter([_transient("500"), _ANSWER])
    reasons, _ = await _answers(lambda _: next(replies), seconds=5.0, count=1)
    assert reasons == ["error"]


async def test_agt_1_replies_can_be_held_to_json_by_the_endpoint() -> None:
    for form in ResponseFormat:
        store = InMemoryAnswering([question()])
        model = ScriptedModel([acts("submit_answer", answer="B")])
        services = AgentServices(model, store, store, Bm25Search(), 2_000, form)
        request = AnswerRequest("w", "d", ("q1",), "r", "v1", "v1", 1)
        _ = [answered async for answered in AnswerQuestions(services)(request)]
        sent = model.requests[0].response_format
        assert (None if sent is None else sent["type"]) == (None if form is ResponseFormat.NONE else form.value)


def test_agt_1_the_schema_that_is_sent_is_that_of_the_template() -> None:
    text = (bundled_path("prompts") / "agent" / "system.md").read_text(encoding="utf-8")
    sent = ResponseFormat.JSON_SCHEMA.request_field(parse_template("agent.system", text))
    assert sent is not None
    assert sent["json_schema"]["name"] == "agent_system"
    assert sent["json_schema"]["schema"]["required"] == ["action"]
