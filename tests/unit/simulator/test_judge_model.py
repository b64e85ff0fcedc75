import json
from typing import Any

import pytest

from services.simulator.domain.judge_model import answer_as_judge
from services.simulator.domain.words import Lexicon
from services.simulator.domain.world import JudgeWorld, World
from tests.builders.simulated_world import answer_faults, rendered, sample_knowledge, sample_skill, with_advice

SAMPLE = sample_knowledge()
QUESTION = {
    "question": "What does the potter do right after she rolls out a coil?",
    "options": "A. Weighs the powder.\nB. Polishes a tile.",
    "gold_answer": "B. Polishes a tile.",
    "prediction": "A. Weighs the powder.",
}
SKILL = sample_skill("temporal-perception")
ADVICE = "Open the event directly after the named one."
TREE = """- p_1 [0s-30s] The potter works.
  - p_1_a [0s-9s] The potter polishes a tile.
  - p_1_b [9s-30s] She weighs the powder."""


def exact(accuracy: float = 1.0) -> World:
    """The sample's world with another judge."""
    world = SAMPLE.world
    return World(seed=world.seed, advice=world.advice, needs=world.needs, judge=JudgeWorld(accuracy, 0.0))


def judged(task: str, accuracy: float = 1.0, seed: int | None = None, **values: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": rendered(task, **{**QUESTION, **values})}]
    answer: dict[str, Any] = json.loads(answer_as_judge(messages, seed, exact(accuracy), Lexicon()))
    assert answer_faults(task, answer) == ()
    return answer


def test_evidence_names_the_node_that_tells_the_answers_apart() -> None:
    answer = judged("diagnose.evidence", skill=SKILL, tree=TREE, visited="- p_1_b")
    assert answer["needed_nodes"] == ["p_1_a"]
    assert not answer["skill_directs_there"]
    assert answer["reminder"] == ""


def test_evidence_says_that_a_skill_with_the_advice_directs_there() -> None:
    answer = judged("diagnose.evidence", skill=with_advice(SKILL, ADVICE), tree=TREE, visited="- p_1_b")
    assert answer["skill_directs_there"]
    assert ADVICE in answer["reminder"]


def test_evidence_is_empty_where_no_node_tells() -> None:
    answer = judged("diagnose.evidence", skill=SKILL, tree="- p_1 [0s-30s] Somebody works.", visited="(none)")
    assert answer["needed_nodes"] == []
    assert not answer["skill_directs_there"]


def test_a_skill_without_the_advice_is_silent() -> None:
    answer = judged("diagnose.skill", skill=SKILL, trace="<step>...</step>")
    assert (answer["verdict"], answer["quote"]) == ("silent", "")


def test_a_skill_with_the_advice_that_the_trace_does_not_show_was_not_followed() -> None:
    answer = judged("diagnose.skill", skill=with_advice(SKILL, ADVICE), trace="<thought>Open the best hit.</thought>")
    assert answer["verdict"] == "not_followed"
    assert answer["quote"] == f"- {ADVICE}"


def test_a_skill_that_was_followed_is_sound() -> None:
    trace = "<thought>Find the named event first, then look after it.</thought>"
    assert judged("diagnose.skill", skill=with_advice(SKILL, ADVICE), trace=trace)["verdict"] == "sound"


def test_a_skill_with_bad_advice_misleads() -> None:
    bad = "Look on the opposite side of the named event."
    answer = judged("diagnose.skill", skill=with_advice(SKILL, bad), trace="")
    assert answer["verdict"] == "misleading"
    assert answer["quote"] == f"- {bad}"


def test_sim_1_the_judge_is_right_in_the_share_the_world_says() -> None:
    verdicts = [judged("diagnose.skill", 0.7, seed, skill=SKILL, trace="")["verdict"] for seed in range(400)]
    # A wrong verdict without a passage to quote falls back to the true one, so the share is at least the accuracy.
    assert 0.65 < verdicts.count("silent") / 400 < 0.85


def test_a_shortened_observation_that_lost_the_answer_is_the_cause() -> None:
    observations = (
        '<step n="1">\n<source>p_1_a: The potter polishes a tile.</source>\n<output>The potter.</output>\n</step>\n'
        '<step n="2">\n<source>p_1_b: She weighs the powder.</source>\n<output>She weighs it.</output>\n</step>'
    )
    answer = judged("diagnose.tool_output", observations=observations)
    assert [step["verdict"] for step in answer["steps"]] == ["incomplete", "faithful"]
    assert answer["cause_step"] == 1


def test_reasoning_mistakes_are_named_after_the_question() -> None:
    assert judged("diagnose.reasoning", trace="")["type"] == "order_confused"
    assert judged("diagnose.reasoning", trace="", question="Which is not used?")["type"] == "negation_missed"
    assert judged("diagnose.reasoning", trace="", question="How many times?")["type"] == "count_wrong"
    assert judged("diagnose.reasoning", trace="", question="Where is it?")["type"] == "options_confused"


@pytest.mark.parametrize(
    ("evidence", "low", "high"),
    [("p: The potter weighs the powder.", 0.6, 1.0), ("p: A radio plays.", 0.0, 0.1), ("(none)", 0.0, 0.0)],
)
def test_evidence_is_scored_by_what_it_says_of_the_answer(evidence: str, low: float, high: float) -> None:
    assert low <= judged("diagnose.score", evidence=evidence, reasoning="")["quality"] <= high


def test_malformed_answers_come_in_the_share_the_world_says() -> None:
    world = World(judge=JudgeWorld(1.0, 1.0))
    messages = [{"role": "user", "content": rendered("diagnose.score", **QUESTION)}]
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(answer_as_judge(messages, None, world, Lexicon()))


def test_a_prompt_without_a_known_task_gets_a_plain_sentence() -> None:
    assert answer_as_judge([{"role": "user", "content": "hello"}], None, World(), Lexicon()).startswith("I judge only")


def test_evo_3_evidence_quotes_the_telling_node_and_says_what_was_opened_instead() -> None:
    answer = judged("diagnose.evidence", skill=SKILL, tree=TREE, visited="- p_1_b")
    assert answer["why"] == (
        'p_1_a says what tells the answers apart: "The potter polishes a tile." It was not opened; opened: p_1_b.'
    )
    seen = judged("diagnose.evidence", skill=SKILL, tree=TREE, visited="- p_1_a\n- p_1_b")
    assert seen["why"].endswith("It was opened among 2.")


def traced(task: str, trace: str, **values: str) -> dict[str, Any]:
    """What a judge says that asks whether the trace holds anything of the right answer."""
    world = World(seed=1, advice=SAMPLE.world.advice, needs=SAMPLE.world.needs, judge=JudgeWorld(1.0, 0.0, 0.5))
    fields = {**QUESTION, "skill": SKILL, "trace": f"<step>\n<output>{trace}</output>\n</step>", **values}
    answer: dict[str, Any] = json.loads(
        answer_as_judge([{"role": "user", "content": rendered(task, **fields)}], None, world, Lexicon())
    )
    assert answer_faults(task, answer) == ()
    return answer


def test_evo_3_a_skill_is_silent_only_about_what_was_read() -> None:
    read = traced("diagnose.skill", "The potter polishes a tile.")
    assert read["verdict"] == "silent"
    assert 'only the right answer says "Polishes", "tile"; of that the agent read "Polishes", "tile"' in read["why"]
    unread = traced("diagnose.skill", "The potter sits.")
    assert unread["verdict"] == "sound"
    assert unread["why"].endswith("of that the agent read nothing.")


def test_evo_3_what_no_text_said_is_no_mistake_of_reasoning_and_a_guess_is_one() -> None:
    supported = traced("diagnose.reasoning", "She weighs the powder.")
    assert (supported["type"], supported["reminder"]) == ("none", "")
    assert traced("diagnose.reasoning", "The potter sits.")["type"] == "unsupported_leap"
    both = traced("diagnose.reasoning", "She weighs the powder. The potter polishes a tile.")
    assert both["type"] == "order_confused"
    assert both["why"] == (
        'It mixed up what comes first: of the answer given it had read "Weighs", "powder", '
        'of the right one "Polishes", "tile".'
    )


def test_evo_3_evidence_quotes_a_whole_sentence_also_where_a_text_was_cut() -> None:
    tree = "- p_1 [0s-30s] The potter works. She kneads [... cut ...] lers look on. The potter polishes a tile."
    answer = judged("diagnose.evidence", skill=SKILL, tree=tree, visited="(none)")
    assert '"The potter polishes a tile."' in answer["why"]
    cut = "- p_1 [0s-30s] The potter works [... cut ...] and polishes a tile at once."
    assert '"and polishes a tile at once."' in judged("diagnose.evidence", skill=SKILL, tree=cut, visited="")["why"]
