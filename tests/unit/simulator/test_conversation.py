import json

from services.inference.domain.agent_view import observation
from services.simulator.domain.conversation import Option, read_conversation, read_options, tag
from services.simulator.domain.memory import remember
from tests.builders.simulated_world import opening, rendered

OVERVIEW = "- v_1 [0s-30s] The cook chops.\n- v_2 [30s-60.5s] The cook eats."
VIEW = (
    '<node id="v_1" level="1" time="0s-30s">The cook chops.</node>\n'
    "<children>\n- v_1_a [0s-10s] The cook takes a knife.\n- v_1_b [10s-30s] The cook cuts…\n</children>"
)


def turn(tool: str, **args: object) -> dict[str, str]:
    return {
        "role": "assistant",
        "content": json.dumps({"reflect": "", "plan": "", "action": {"tool": tool, "args": args}}),
    }


def test_a_tag_is_read_only_from_lines_of_its_own() -> None:
    text = "Look at `<question>` first.\n<question>\nWhy?\nSay why.\n</question>\nthe end of <question>"
    assert tag("question", text) == "Why?\nSay why."
    assert tag("options", text) == ""


def test_options_may_span_lines_and_hold_letters() -> None:
    assert read_options("A. one\nB) two\nand more\n(C) D. three") == (
        Option("A", "one"),
        Option("B", "two and more"),
        Option("C", "D. three"),
    )


def test_the_products_opening_is_read() -> None:
    found = read_conversation(opening("Search.", "Who eats?", ["The cook", "A dog"], OVERVIEW, max_steps=6))
    assert found.question == "Who eats?"
    assert [option.text for option in found.options] == ["The cook", "A dog"]
    assert found.skills == ("Search.",)
    assert found.steps == ()
    assert found.steps_left == 6
    assert {"view_node", "search_similar", "observe_frame", "submit_answer"} <= found.tools


def test_evo_12_instructions_are_the_prompt_without_skills_and_the_sections_that_programs_read() -> None:
    found = read_conversation(opening("Search each option.", "q", ["a", "b"], OVERVIEW))
    assert "Judge an option by what the descriptions say" in found.instructions
    for absent in ("Search each option.", "view_node", "code fence", "L1, scenes"):
        assert absent not in found.instructions


def test_observations_and_faults_become_steps() -> None:
    messages = opening("s", "q", ["a", "b"], OVERVIEW)
    messages += [turn("view_node", node_id="v_1"), {"role": "user", "content": observation("view_node", 1, 7, VIEW)}]
    messages += [
        turn("view_node", node_id="x"),
        {"role": "user", "content": rendered("agent.fault", fault="no node x")},
    ]
    messages += [
        {"role": "assistant", "content": "no json"},
        {"role": "user", "content": rendered("agent.fault", fault="?")},
    ]
    found = read_conversation(messages)
    assert [(step.tool, step.fault) for step in found.steps] == [
        ("view_node", ""),
        ("view_node", "no node x"),
        ("", "?"),
    ]
    assert found.steps[0].output == VIEW


def test_steps_left_come_from_the_last_observation() -> None:
    messages = opening("s", "q", ["a", "b"], OVERVIEW)
    messages += [turn("view_node", node_id="v_1"), {"role": "user", "content": observation("view_node", 1, 3, VIEW)}]
    assert read_conversation(messages).steps_left == 3


def test_memory_holds_the_nodes_seen_with_their_levels() -> None:
    messages = opening("s", "q", ["a", "b"], OVERVIEW)
    messages += [turn("view_node", node_id="v_1"), {"role": "user", "content": observation("view_node", 1, 7, VIEW)}]
    hits = "- v_2_c [40s-50s] (score 3.2) The cook eats soup."
    messages += [
        turn("search_similar", query="soup"),
        {"role": "user", "content": observation("search_similar", 2, 6, hits)},
    ]
    memory = remember(read_conversation(messages))
    assert [node.node_id for node in memory.level(1)] == ["v_1", "v_2"]
    assert [(node.node_id, node.level) for node in memory.level(2)] == [("v_1_a", 2), ("v_1_b", 2)]
    assert memory.nodes["v_1"].opened
    assert not memory.nodes["v_2"].opened
    assert memory.nodes["v_2"].end == 60.5
    assert memory.hits["soup"] == ("v_2_c",)
    assert memory.nodes["v_2_c"].text == "The cook eats soup."
    assert {"view_node:v_1", "search_similar:soup"} <= memory.tried


def test_messages_in_parts_and_without_content_are_read() -> None:
    parts = [
        {"type": "text", "text": "<question>\nWhy?\n</question>"},
        {"type": "image_url", "image_url": {"url": "x"}},
    ]
    assert read_conversation([{"role": "user", "content": parts}]).question == "Why?"
    assert read_conversation([{"role": "user", "content": None}]).question == ""
    assert read_conversation([]).options == ()
