"""What `sim-agent` does next, and how it decides, turn by turn (SIM-1)."""

import json
from typing import Any

import pytest

from services.inference.domain.agent_view import observation
from services.simulator.domain.agent_model import answer_as_agent
from services.simulator.domain.models import Knowledge
from tests.builders.simulated_world import SURE, knowledge, opening, rendered

ADVICE = {
    "search_options": "SEARCH",
    "look_after": "AFTER",
    "look_before": "BEFORE",
    "count_children": "COUNT",
    "check_frames": "FRAMES",
    "mind_negation": "NEGATION",
    "compare_times": "TIMES",
    "weigh_mentions": "MENTIONS",
    "stop_early": "STOP",
    "wrong_way": "WRONG",
}
WORLD = SURE + "".join(
    f'[[advice]]\nbehaviour = "{name}"\nphrases = ["(?-i:{word})"]\n' for name, word in ADVICE.items()
)
SURE_WORLD: Knowledge = knowledge(WORLD)
OVERVIEW = "- v_s1 [0s-30s] The cook works in the kitchen.\n- v_s2 [30s-60s] The cook sits in the garden."
SCENES = {
    "v_s1": [
        ("v_s1_a", 0, 10, "The cook washes three carrots."),
        ("v_s1_b", 10, 20, "The cook slices an onion."),
        ("v_s1_c", 20, 30, "The cook washes three carrots."),
    ],
    "v_s2": [("v_s2_a", 30, 45, "The cook feeds a dog."), ("v_s2_b", 45, 60, "The cook washes three carrots.")],
}
EVENTS = {event[0]: event for events in SCENES.values() for event in events}
FRAMES = {"v_s1_b": [("v_s1_b_f", 10, 20, "A knife lies there: it is red.")]}


def line(node: tuple[str, int, int, str], note: str = "") -> str:
    return f"- {node[0]} [{node[1]}s-{node[2]}s] {note}{node[3]}"


def tool(name: str, args: dict[str, Any]) -> str:
    """The kitchen's answer to a tool call."""
    if name == "search_similar":
        wanted = set(args["query"].lower().rstrip("?.").split())
        found = sorted(EVENTS.values(), key=lambda event: -len(wanted & set(event[3].lower().rstrip(".").split())))
        return "\n".join(line(event, "(score 1) ") for event in found[:2])
    node_id = args["node_id"]
    if node_id in SCENES:
        children = "\n".join(map(line, SCENES[node_id]))
        start, end = SCENES[node_id][0][1], SCENES[node_id][-1][2]
        return f'<node id="{node_id}" level="1" time="{start}s-{end}s">x</node>\n<children>\n{children}\n</children>'
    node = EVENTS.get(node_id) or FRAMES["v_s1_b"][0]
    level = 2 if node_id in EVENTS else 3
    frames = "\n".join(line((one[0], one[1], one[2], "A knife…")) for one in FRAMES.get(node_id, []))
    children = f"\n<children>\n{frames}\n</children>" if frames else ""
    return f'<node id="{node_id}" level="{level}" time="{node[1]}s-{node[2]}s">{node[3]}</node>{children}'


def walk(skill: str, question: str, options: list[str], max_steps: int = 9) -> tuple[list[str], str]:
    """The calls of a whole conversation in short, and the option submitted."""
    messages = opening(skill, question, options, OVERVIEW, max_steps)
    calls: list[str] = []
    for step in range(1, 20):
        reply = answer_as_agent(messages, None, SURE_WORLD.world, SURE_WORLD.lexicon)
        action = json.loads(reply)["action"]
        if action["tool"] == "submit_answer":
            return calls, options["ABCDEFG".index(action["args"]["answer"])]
        subject = action["args"].get("node_id") or action["args"].get("query") or action["args"].get("node_ids")
        calls.append(f"{action['tool'].split('_')[0]} {subject}")
        output = tool(action["tool"], action["args"])
        messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "user", "content": observation(action["tool"], step, max_steps - step, output)})
    raise AssertionError(calls)


def test_without_advice_it_searches_opens_the_best_hit_and_answers() -> None:
    calls, answer = walk("", "What is it that the cook slices?", ["A melon", "An onion"])
    assert calls == ["search What is it that the cook slices?", "view v_s1_b"]
    assert answer == "An onion"


@pytest.mark.parametrize(
    ("skill", "side", "opened", "right"),
    [
        ("AFTER", "after", "v_s1_c", "Washes carrots"),
        ("BEFORE", "before", "v_s1_a", "Washes carrots"),
        ("WRONG", "after", "v_s1_a", "Washes carrots"),
    ],
)
def test_it_opens_the_event_on_the_side_the_advice_says(skill: str, side: str, opened: str, right: str) -> None:
    calls, answer = walk(skill, f"What does she do {side} slicing an onion?", ["Feeds a dog", "Washes carrots"])
    assert calls == ["search slicing an onion", "view v_s1", f"view {opened}"]
    assert answer == right


def test_beyond_the_last_event_of_a_scene_it_goes_on_to_the_next_scene() -> None:
    calls, answer = walk("BEFORE", "What does she do before feeding a dog?", ["Slices an onion", "Washes carrots"])
    assert calls == ["search feeding a dog", "view v_s2", "view v_s1", "view v_s1_c"]
    assert answer == "Washes carrots"


def test_it_counts_over_every_scene_when_told_and_over_one_when_not() -> None:
    question, options = "How many times does the cook wash carrots?", ["1", "2", "3"]
    calls, answer = walk("COUNT", question, options)
    assert sorted(calls) == ["view v_s1", "view v_s2"]
    assert answer == "3"
    calls, answer = walk("", question, options)
    assert calls[1:] == ["view v_s1"]
    assert answer == "2"


def test_it_goes_down_to_the_frames_when_told() -> None:
    question, options = "What colour is the knife when the cook slices an onion?", ["Blue", "Red"]
    calls, answer = walk("FRAMES", question, options)
    assert "view v_s1_b_f" in calls
    assert answer == "Red"
    assert not any("_f" in call for call in walk("", question, options)[0])


def test_it_searches_each_option_when_told() -> None:
    calls, answer = walk("SEARCH", "Why is she there?", ["To paint a wall", "To slice an onion"])
    assert calls == ["search To paint a wall", "search To slice an onion"]
    assert answer == "To slice an onion"


def test_it_minds_a_denial_when_told() -> None:
    question, options = "What does the cook not do?", ["Slices an onion", "Paints a wall", "Feeds a dog"]
    assert walk("NEGATION", question, options)[1] == "Paints a wall"
    assert walk("SEARCH", question, options)[1] != "Paints a wall"


def test_it_compares_times_when_told() -> None:
    options = ["Feeds a dog", "Slices an onion"]
    assert walk("TIMES", "Which happens first?", options)[1] == "Slices an onion"
    assert walk("TIMES", "Which happens last?", options)[1] == "Feeds a dog"


def test_it_weighs_how_often_an_option_is_mentioned_when_told() -> None:
    question, options = "What happens in the video?", ["Feeds a dog", "Washes carrots"]
    calls, answer = walk("MENTIONS", question, options)
    assert [call for call in calls if call.startswith("search")] == [f"search {text}" for text in (question, *options)]
    assert {"view v_s2_a", "view v_s1_a"} <= set(calls)
    assert answer == "Washes carrots"


def test_weighing_mentions_goes_on_beside_the_named_event_and_reads_more_than_it() -> None:
    question, options = "What does she do after slicing an onion?", ["Feeds a dog", "Washes carrots"]
    calls, _ = walk("AFTER MENTIONS", question, options)
    assert calls[:3] == ["search slicing an onion", "view v_s1", "view v_s1_c"]
    assert "search Feeds a dog" in calls


def test_a_wide_search_asks_for_more_hits_than_the_tool_gives_by_itself() -> None:
    messages = opening("MENTIONS", "What happens?", ["Feeds a dog"], OVERVIEW)
    for call in ("search_similar", "view_node"):
        reply = answer_as_agent(messages, None, SURE_WORLD.world, SURE_WORLD.lexicon)
        action = json.loads(reply)["action"]
        assert action["tool"] == call
        assert "k" not in action["args"]
        messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "user", "content": observation(call, 1, 8, tool(call, action["args"]))})
    wide = json.loads(answer_as_agent(messages, None, SURE_WORLD.world, SURE_WORLD.lexicon))["action"]["args"]
    assert (wide["query"], wide["k"]) == ("Feeds a dog", 20)


def test_bad_advice_makes_it_answer_at_once() -> None:
    assert walk("STOP", "What does the cook slice?", ["A melon", "An onion"])[0] == []


def test_it_submits_before_its_steps_run_out() -> None:
    calls, _ = walk("SEARCH", "Why?", ["a cat", "a dog", "a cow", "a hen"], max_steps=2)
    assert len(calls) == 2


def test_a_call_that_failed_is_not_repeated() -> None:
    messages = opening("", "What does the cook slice?", ["A melon", "An onion"], OVERVIEW)
    for _ in range(3):
        reply = answer_as_agent(messages, None, SURE_WORLD.world, SURE_WORLD.lexicon)
        messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "user", "content": rendered("agent.fault", fault="not now")})
    actions = [json.loads(one["content"])["action"] for one in messages if one["role"] == "assistant"]
    assert len({json.dumps(action) for action in actions}) == 3


def test_without_tools_it_answers_directly() -> None:
    prompt = rendered("agent.direct", question="Which is a fruit?", options="A. apple\nB. iron")
    reply = json.loads(
        answer_as_agent([{"role": "user", "content": prompt}], None, SURE_WORLD.world, SURE_WORLD.lexicon)
    )
    assert reply["answer"] in ("A", "B")


def test_malformed_turns_come_in_the_share_the_world_says() -> None:
    known = knowledge("[agent]\nmalformed_rate = 0.3")
    messages = opening("", "What?", ["a", "b"], OVERVIEW)
    broken = 0
    for seed in range(400):
        try:
            json.loads(answer_as_agent(messages, seed, known.world, known.lexicon))
        except ValueError:
            broken += 1
    assert abs(broken / 400 - 0.3) < 0.08


def test_a_slip_submits_the_second_best() -> None:
    known = knowledge("[agent]\nnoise = 0.0\nslip_rate = 1.0\nspontaneous_rate = 0.0")
    messages = opening("", "Where is the cook?", ["In the kitchen", "On the moon"], OVERVIEW, max_steps=0)
    answer = json.loads(answer_as_agent(messages, None, known.world, known.lexicon))
    assert answer["action"]["args"]["answer"] == "B"
