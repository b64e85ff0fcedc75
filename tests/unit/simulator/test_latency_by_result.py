"""Latency that depends on being right needs to know whether an answer is right (SIM-2)."""

import json

from services.questions import Question
from services.simulator.domain.answers import Answers
from services.simulator.domain.models import read_chat_call, reply_to
from tests.builders.simulated_world import knowledge, opening

OPTIONS = ("red", "blue")
GOLD = Answers([Question("q", "v", "Colour", "Which colour?", OPTIONS, "B", "q")])


def is_right(world: str, question: str = "Which colour?", model: str = "sim-dice") -> bool | None:
    call = read_chat_call({"model": model, "messages": opening("", question, OPTIONS, "- v_1 [0s-9s] x")})
    return reply_to(call, knowledge(world, GOLD)).is_right


def test_an_answer_is_compared_with_the_gold_one_where_latency_asks_for_it() -> None:
    slow = "[latency]\nright_factor = 2.0\n"
    assert is_right(f"{slow}[dice]\ndefault = 1.0") is True
    assert is_right(f"{slow}[dice]\ndefault = 0.0") is False
    assert is_right("[dice]\ndefault = 1.0") is None


def test_a_turn_that_submits_nothing_and_an_unknown_question_are_neither() -> None:
    slow = "[latency]\nright_factor = 2.0\n"
    assert is_right(slow, model="sim-agent") is None
    assert is_right(slow, question="What else?") is None


def test_the_dice_submit_a_letter_that_can_be_read() -> None:
    call = read_chat_call({"model": "sim-dice", "messages": opening("", "Which colour?", OPTIONS, "")})
    reply = json.loads(reply_to(call, knowledge("[dice]\ndefault = 1.0", GOLD)).content)
    assert reply["action"]["args"]["answer"] == "B"
