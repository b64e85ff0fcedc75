import json

import pytest

from services.inference.domain.completion_stream import CompletionStream
from services.inference.domain.sse import SseDecoder
from services.simulator.domain import wire
from services.simulator.domain.draws import Draws
from services.simulator.domain.errors import BadRequest
from services.simulator.domain.fault_kinds import FAULT_KINDS, HARMLESS_KINDS
from services.simulator.domain.faults import FaultPlan, plan_fault, plan_latency, read_fault_header
from services.simulator.domain.models import ChatCall, Reply
from services.simulator.domain.world import FaultWorld, LatencyWorld

CALL = ChatCall("sim-tool", ({"role": "user", "content": "x"},), 7, stream=True, include_usage=True, max_tokens=None)
REPLY = Reply('Ein "Wort" — ünïcode\nund mehr, viel mehr Text als nötig 🎬.', "stop", 1, 15, None)
EVENTS = [*wire.text_events(CALL, REPLY), *wire.closing_events(CALL, REPLY)]


def test_the_stream_carries_the_text_the_finish_reason_and_the_usage() -> None:
    records = [json.loads(event.removeprefix(b"data: ")) for event in EVENTS[:-1]]
    text = "".join(choice["delta"].get("content", "") for record in records for choice in record["choices"])
    assert text == REPLY.content
    assert records[-2]["choices"][0]["finish_reason"] == "stop"
    assert records[-1]["usage"] == {"prompt_tokens": 1, "completion_tokens": 15, "total_tokens": 16}
    assert EVENTS[-1] == b"data: [DONE]\n\n"
    assert len({record["id"] for record in records}) == 1


def test_the_whole_answer_says_the_same() -> None:
    record = json.loads(wire.whole_completion(CALL, REPLY))
    assert record["choices"][0]["message"]["content"] == REPLY.content
    assert record["usage"]["total_tokens"] == 16


def test_sim_1_equal_answers_are_equal_bytes() -> None:
    again = [*wire.text_events(CALL, REPLY), *wire.closing_events(CALL, REPLY)]
    assert again == EVENTS


def test_odd_chunks_cut_characters_and_only_add_comments() -> None:
    pieces = wire.reformed(EVENTS, "odd_chunks")
    assert max(map(len, pieces)) == wire.ODD_PIECE_BYTES
    assert b"".join(pieces).replace(b": keep-alive\n\n", b"") == b"".join(EVENTS)
    assert any(_cuts_a_character(piece) for piece in pieces)


@pytest.mark.parametrize("kind", ["", "crlf", "lone_cr", "bom", "odd_chunks", "no_done"])
def test_the_products_parser_reads_every_harmless_form(kind: str) -> None:
    decoder, stream = SseDecoder(), CompletionStream()
    for piece in wire.reformed(EVENTS, kind):
        for event in decoder.feed(piece):
            stream.take(event)
    assert stream.terminal
    completion = stream.completion("sim-tool")
    assert (completion.content, completion.finish_reason) == (REPLY.content, "stop")


def _cuts_a_character(piece: bytes) -> bool:
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def test_every_kind_of_fault_is_drawn_at_its_rate() -> None:
    faults = FaultWorld(rates=dict.fromkeys(FAULT_KINDS, 1 / len(FAULT_KINDS)))
    kinds = [plan_fault(faults, "sim-agent", Draws(index), 0).kind for index in range(4000)]
    assert set(kinds) == set(FAULT_KINDS)
    assert abs(kinds.count("html") / 4000 - 1 / len(FAULT_KINDS)) < 0.02


def test_another_attempt_is_another_draw_and_attempts_can_be_bounded() -> None:
    faults = FaultWorld(rates={"server_error": 0.5})
    kinds = [plan_fault(faults, "m", Draws("prompt"), attempt).kind for attempt in range(40)]
    assert set(kinds) == {"", "server_error"}
    always = FaultWorld(rates={"server_error": 1.0}, attempts_per_prompt=2)
    assert [plan_fault(always, "m", Draws("p"), attempt).kind for attempt in range(3)] == ["server_error"] * 2 + [""]


def test_faults_can_be_kept_to_some_models() -> None:
    faults = FaultWorld(rates={"html": 1.0}, models=("sim-judge",))
    assert plan_fault(faults, "sim-agent", Draws("p"), 0).kind == ""
    assert plan_fault(faults, "sim-judge", Draws("p"), 0).kind == "html"


def test_sim_2_a_request_names_its_own_fault() -> None:
    plan = read_fault_header("stalled; after_chunks=1; hold_seconds=0.5; retry_after=Wed", FaultWorld())
    assert plan == FaultPlan("stalled", "Wed", 1, 0.5)
    assert read_fault_header("none", FaultWorld(rates={"html": 1.0})).kind == ""


@pytest.mark.parametrize(
    "value", ["", "boom", "html; after_chunks=-1", "html; hold_seconds=nan", "html; x=1", "html; after_chunks"]
)
def test_a_header_that_cannot_be_read_is_refused(value: str) -> None:
    with pytest.raises(BadRequest, match="X-Simulator-Fault"):
        read_fault_header(value, FaultWorld())


def test_latency_can_depend_on_being_right() -> None:
    latency = LatencyWorld(median_ms=100.0, sigma=0.0, right_factor=3.0, token_ms=5.0)
    assert plan_latency(latency, Draws("x"), True).first_token_seconds == pytest.approx(0.3)
    assert plan_latency(latency, Draws("x"), False).first_token_seconds == pytest.approx(0.1)
    assert plan_latency(latency, Draws("x"), None).between_seconds == pytest.approx(0.005)


def test_harmless_kinds_are_kinds() -> None:
    assert set(FAULT_KINDS) >= HARMLESS_KINDS
