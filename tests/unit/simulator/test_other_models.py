import json
import math
from base64 import b64encode

import pytest

from services.questions import Question
from services.simulator.domain.answers import Answers
from services.simulator.domain.dice_model import answer_as_dice
from services.simulator.domain.embedding import DIMENSIONS, embed
from services.simulator.domain.errors import BadRequest, UnknownModel
from services.simulator.domain.models import read_chat_call, reply_to
from services.simulator.domain.tool_model import NOTHING, answer_as_tool, extract, summary, verified
from services.simulator.domain.vision_model import answer_as_vision, jpeg_comments
from services.simulator.domain.words import Lexicon
from tests.builders.simulated_world import SAMPLE, knowledge, opening, rendered, world

LEXICON = Lexicon()
OPTIONS = ("red", "blue", "green", "white")
GOLD = Answers([Question("q", "v", "Colour", "Which colour?", OPTIONS, "C", "q")])


def dice_share(text: str, skill: str = "Look.", answers: Answers = GOLD) -> float:
    found = world(text)
    messages = opening(skill, "Which colour?", OPTIONS, "- v_1 [0s-9s] x")
    answered = [json.loads(answer_as_dice(messages, seed, found, answers)) for seed in range(1000)]
    return sum(one["action"]["args"]["answer"] == "C" for one in answered) / 1000


def test_sim_1_dice_are_right_as_often_as_the_world_says() -> None:
    assert abs(dice_share("[dice]\ndefault = 0.7") - 0.7) < 0.05
    assert abs(dice_share("[dice]\ndefault = 0.7\n[dice.right]\nColour = 0.2") - 0.2) < 0.05


def test_sim_1_advice_shifts_the_dice_of_its_type() -> None:
    text = '[dice]\ndefault = 0.5\n[[dice.effects]]\nphrase = "look twice"\nshift = 0.3\ntask_type = "{}"'
    assert abs(dice_share(text.format("Colour"), "Always look twice.") - 0.8) < 0.05
    assert abs(dice_share(text.format("Colour")) - 0.5) < 0.05
    assert abs(dice_share(text.format("Other"), "Always look twice.") - 0.5) < 0.05


def test_dice_guess_evenly_about_an_unknown_question() -> None:
    assert abs(dice_share("[dice]\ndefault = 1.0", answers=Answers()) - 0.25) < 0.05


def test_dice_answer_a_prompt_without_tools_directly() -> None:
    options = "\n".join(f"{letter}. {text}" for letter, text in zip("ABCD", OPTIONS, strict=True))
    prompt = rendered("agent.direct", question="Which colour?", options=options)
    answer = answer_as_dice([{"role": "user", "content": prompt}], None, world("[dice]\ndefault = 1.0"), GOLD)
    assert json.loads(answer)["answer"] == "C"


def test_gold_answers_follow_the_text_when_options_are_in_another_order() -> None:
    call = read_chat_call({"model": "sim-dice", "messages": opening("s", "which  COLOUR?", OPTIONS[::-1], "")})
    reply = reply_to(call, knowledge("[dice]\ndefault = 1.0", GOLD))
    assert json.loads(reply.content)["action"]["args"]["answer"] == "B"


TEXT = "A cook stands there. It is evening. The cook cuts an onion with a red knife. A dog sleeps. Rain falls outside."


def test_an_extract_holds_what_bears_on_the_question_and_nothing_new() -> None:
    found = extract(TEXT, "Which knife cuts the onion?", LEXICON)
    assert "red knife" in found
    assert len(found) <= len(TEXT) / 2 + 1
    assert all(sentence.rstrip(".") in TEXT for sentence in found.split(". "))
    assert extract("", "q", LEXICON) == NOTHING


def test_an_invented_sentence_is_removed_from_an_extract() -> None:
    assert verified(TEXT, "A dog sleeps. A cat sings.") == "A dog sleeps."
    assert verified(TEXT, "A cat sings.") == NOTHING


def test_a_summary_keeps_what_is_new_within_its_length() -> None:
    found = summary("The cook cuts an onion. The cook cuts an onion. A dog barks.", 60, LEXICON)
    assert found == "The cook cuts an onion. A dog barks."
    assert len(summary(TEXT, 40, LEXICON)) <= 40


def test_the_tool_model_tells_its_prompts_apart_by_their_tags() -> None:
    question = "Which knife cuts the onion?"
    assert "red knife" in answer_as_tool(rendered("tools.extract", question=question, text=TEXT), LEXICON)
    checked = rendered("tools.verify", question=question, text=TEXT, extract="A dog sleeps. No.")
    assert answer_as_tool(checked, LEXICON) == "A dog sleeps."
    summed = rendered("tools.summarise", time="0s-9s", descriptions=TEXT, max_chars="30")
    assert answer_as_tool(summed, LEXICON) == "A cook stands there."


def test_vision_tells_the_side_car_text_of_every_picture() -> None:
    pictures = sorted(
        path for path in SAMPLE.glob("trees/*/frames/*.jpg") if "is" in str(jpeg_comments(path.read_bytes()))
    )
    jpeg = pictures[0].read_bytes()
    (comment,) = jpeg_comments(jpeg)
    url = f"data:image/jpeg;base64,{b64encode(jpeg).decode()}"
    prompt = rendered("tools.observe", question="q", frames="1. f", subtitle="Good evening")
    parts = [{"type": "text", "text": prompt}, {"type": "image_url", "image_url": {"url": url}}]
    assert (
        answer_as_vision([{"role": "user", "content": parts}]) == f"Frame 1: {comment}\nSpoken meanwhile: Good evening"
    )
    assert answer_as_vision([{"role": "user", "content": "hi"}]) == "No picture was sent."


@pytest.mark.parametrize(
    "jpeg", [b"", b"GIF89a", b"\xff\xd8", b"\xff\xd8\xff\xfe\x00", b"\xff\xd8\xff\xfe\x00\x00\xff"]
)
def test_a_broken_picture_has_no_text(jpeg: bytes) -> None:
    assert jpeg_comments(jpeg) in ([], [""])


def test_texts_that_share_words_are_closer() -> None:
    def cosine(one: str, other: str) -> float:
        return sum(a * b for a, b in zip(embed(one, LEXICON), embed(other, LEXICON), strict=True))

    assert cosine("the cook cuts an onion", "a cook cutting onions") > 0.9
    assert cosine("the cook cuts an onion", "a dog barks") < 0.5
    assert len(embed("x", LEXICON)) == DIMENSIONS
    assert math.isclose(sum(value * value for value in embed("", LEXICON)), 1.0)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({"model": "sim-agent"}, "messages"),
        ({"model": "sim-agent", "messages": []}, "messages"),
        ({"model": "sim-agent", "messages": ["x"]}, "messages"),
        ({"model": "sim-agent", "messages": [{}], "seed": "1"}, "seed"),
        ({"model": "sim-agent", "messages": [{}], "max_tokens": 0}, "max_tokens"),
    ],
)
def test_a_wrong_request_is_refused_naming_the_field(body: object, field: str) -> None:
    with pytest.raises(BadRequest, match=field):
        read_chat_call(body)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(UnknownModel, match="gpt"):
        read_chat_call({"model": "gpt", "messages": [{}]})


def test_an_answer_beyond_max_tokens_is_cut_and_says_so() -> None:
    call = read_chat_call({"model": "sim-tool", "messages": [{"role": "user", "content": "x"}], "max_tokens": 2})
    reply = reply_to(call, knowledge())
    assert (reply.finish_reason, reply.completion_tokens, len(reply.content)) == ("length", 2, 8)
