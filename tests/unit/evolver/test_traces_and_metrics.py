"""EVO-3: traces are rebuilt, bounded and measured."""

import json

import pytest

from services.evolver.domain.metrics import question_metrics
from services.evolver.domain.outline import tree_outline, was_seen
from services.evolver.domain.trace import (
    TraceStep,
    arguments_of,
    estimate_tokens,
    rebuild_trace,
    trace_text,
)
from tests.builders.cases import case, small_tree, step, submit, view


def test_evo_3_a_trace_is_rebuilt_from_steps_json() -> None:
    entries = [
        {
            "step": 0,
            "kind": "observation",
            "tool": "view_node",
            "args": {"node_id": "v_e1"},
            "output": "o",
            "thought": "t",
        },
        {"kind": "unparsable", "tool": "", "args": None, "output": "<fault>no JSON</fault>", "thought": None},
    ]
    assert rebuild_trace(json.dumps(entries)) == (
        TraceStep(0, "view_node", {"node_id": "v_e1"}, "o", "t"),
        TraceStep(1, "", {}, "<fault>no JSON</fault>", ""),
    )


@pytest.mark.parametrize("text", ["", "nonsense", "{}", "[1, null]", "[" * 100_000])
def test_qua_13_unreadable_steps_give_no_trace(text: str) -> None:
    assert rebuild_trace(text) == ()


def test_qua_13_unreadable_arguments_are_kept_as_text() -> None:
    assert arguments_of("[1]") == {"unreadable": "[1]"}
    assert arguments_of('{"a": 1}') == {"a": 1}
    assert arguments_of("") == {}


def test_evo_5_a_trace_that_fits_is_whole() -> None:
    text, cut = trace_text(case(view(0, "e1", "out" * 50), submit(1)).trace, 2000)
    assert not cut
    assert "out" * 50 in text
    assert '<step n="0">\n<call>view_node {"node_id": "v_e1", "question": "why"}</call>' in text


def test_evo_5_long_outputs_are_shortened_with_a_mark_and_every_step_stays() -> None:
    trace = tuple(view(number, "e1", "x" * 5000) for number in range(6))
    text, cut = trace_text(trace, 1500)
    assert cut
    assert estimate_tokens(text) <= 1500
    assert text.count("[... cut ...]") == 6
    assert all(f'<step n="{number}">' in text for number in range(6))


def test_evo_5_when_nothing_else_helps_the_middle_steps_go_with_a_mark() -> None:
    trace = tuple(view(number, "e1", "x" * 500) for number in range(100))
    text, cut = trace_text(trace, 800)
    assert cut
    assert estimate_tokens(text) <= 800
    assert '<step n="0">' in text
    assert '<step n="99">' in text
    assert "steps cut ...]" in text


def test_evo_3_metrics_of_a_case() -> None:
    trace = (
        view(0, "s1"),
        view(1, "e1"),
        view(2, "e1"),
        view(3, "f1"),
        view(4, "s1"),
        step(5, "search_similar", "- v_e1", query="pot boils"),
        step(6, "search_similar", "- v_e1", query="Boils POT"),
        step(7, "view_node", "<fault>no such node</fault>", node_id="zzz"),
        step(8, "submit_answer", answer="A", confidence=0.8),
    )
    metrics = question_metrics(case(*trace, max_steps=16, reasoning="surely"))
    assert metrics == {
        "format_compliance": 8 / 9,
        "steps_used": 8,
        "budget_use": 0.5,
        "repeat_visits": 2,
        "repeated_queries": 1,
        "level_jumps": 1,
        "tool_use": {"view_node": 5, "search_similar": 2, "submit_answer": 1},
        "confidence": 0.8,
        "calibration_error": pytest.approx(0.64),
    }


def test_evo_3_metrics_that_are_not_defined_are_absent() -> None:
    metrics = question_metrics(case(tree=None, stop_reason="budget_exceeded"))
    assert set(metrics) == {"steps_used", "repeat_visits", "repeated_queries"}


@pytest.mark.parametrize(
    ("reasoning", "prediction", "error"),
    [("It might be so.", "A", 0.25), ("It is so.", "A", 1.0), ("It is so.", "B", 0.0)],
)
def test_evo_3_confidence_is_read_from_the_wording_where_none_is_stated(
    reasoning: str, prediction: str, error: float
) -> None:
    metrics = question_metrics(case(submit(0), reasoning=reasoning, prediction=prediction))
    assert metrics["calibration_error"] == error


def test_evo_3_a_node_counts_as_seen_by_its_text_too() -> None:
    tree = small_tree()
    listed = case(step(0, "search_similar", "- v_e3 [30s-60s] (score 1) The guests sit down  and eat.", query="x"))
    assert was_seen(listed, tree.nodes["v_e3"])
    assert was_seen(listed, tree.nodes["v_s2"])
    assert not was_seen(listed, tree.nodes["v_e1"])
    assert not was_seen(listed, tree.nodes["v_s1"])


def test_evo_3_a_scene_whose_events_were_all_seen_is_seen() -> None:
    assert was_seen(case(view(0, "e1"), view(1, "e2")), small_tree().nodes["v_s1"])


def test_evo_3_an_outline_keeps_its_bound_and_says_what_it_leaves_out() -> None:
    tree = small_tree()
    assert "left out" not in tree_outline(tree, 5000)
    assert all(node in tree_outline(tree, 5000) for node in tree.nodes)
    for bound in (300, 120, 60, 30):
        text = tree_outline(tree, bound)
        assert estimate_tokens(text) <= bound
        left = [line for line in text.split("\n") if line.startswith("[...")]
        shown = sum(node in text for node in tree.nodes)
        assert left == ([f"[... {len(tree.nodes) - shown} nodes left out ...]"] if shown < len(tree.nodes) else [])
