"""Cases for the evolver's tests: a small video, questions about it, and what an agent did."""

import json
from dataclasses import replace
from typing import Any

from services.evolver.domain.case import Answered, Case
from services.evolver.domain.diagnosis import Category, Cause, Diagnosis, Explanation
from services.evolver.domain.trace import TraceStep
from services.questions import Question
from services.video_tree import VideoTree, parse_tree

LONG_SCENE = "A man in a kitchen prepares soup for a family dinner. " * 12
SKILL = """---
name: action-reasoning
description: Why something is done.
task_type: Action Reasoning
---
# Why something is done

Open the event before the action. Compare every option with what you read.

- Start from the overview and choose the scene.
- Check the frames when the event is short.

<!-- APPENDIX_START -->
<!-- APPENDIX_END -->

<!-- MOMENTUM_START -->
<!-- MOMENTUM_END -->
"""


def small_tree(video_id: str = "v") -> VideoTree:
    """Two scenes; the second one's only event is where the evidence lies."""
    return parse_tree(tree_json(video_id))


def tree_json(video_id: str = "v") -> bytes:
    """The file of `small_tree`."""
    nodes: dict[str, Any] = {}

    def add(name: str, level: int, start: int, end: int, text: str, *children: str) -> None:
        field = ("scene_summary", "event_description", "frame_summary")[level - 1]
        nodes[f"{video_id}_{name}"] = {
            "level": level,
            "time_range": [start, end],
            "card": {field: text},
            "subtitle": "",
            "children_ids": [f"{video_id}_{child}" for child in children],
        }

    add("s1", 1, 0, 30, LONG_SCENE, "e1", "e2")
    add("s2", 1, 30, 60, "Guests arrive.", "e3")
    add("e1", 2, 0, 15, "The man cuts onions and starts to cry.")
    add("e2", 2, 15, 30, "The pot boils over because nobody watches it.")
    add("e3", 2, 30, 60, "The guests sit down and eat.", "f1")
    add("f1", 3, 40, 40, "A dog sleeps below the table.")
    return json.dumps(
        {"videoID": video_id, "duration_category": "short", "duration_seconds": 60, "domain": "home", "nodes": nodes}
    ).encode()


def question(question_id: str = "q1", **changes: Any) -> Question:
    """A question whose gold answer is B."""
    made = Question(
        question_id,
        "v",
        "Action Reasoning",
        "Why does the pot boil over?",
        ("The fire is too small", "Nobody watches it", "The man adds salt"),
        "B",
        question_id,
    )
    return replace(made, **changes)


def step(number: int, tool: str, output: str = "", thought: str = "", **args: Any) -> TraceStep:
    """One step of a trace."""
    return TraceStep(number, tool, args, output, thought)


def view(number: int, node: str, output: str = "Something else entirely.") -> TraceStep:
    """A look at a node."""
    return step(number, "view_node", output, node_id=f"v_{node}", question="why")


def submit(number: int, letter: str = "A") -> TraceStep:
    """The submitted answer."""
    return step(number, "submit_answer", answer=letter)


def case(*trace: TraceStep, question_id: str = "q1", prediction: str = "A", **changes: Any) -> Case:
    """A case; wrong unless the prediction is B. `changes` are fields of the case or of the prediction."""
    asked = changes.pop("question", question(question_id))
    fields = {name: changes.pop(name) for name in ("stop_reason", "evidence", "reasoning") if name in changes}
    answered = Answered(
        question_id,
        prediction,
        prediction == asked.answer,
        **{"stop_reason": "finished", "steps_used": max(0, len(trace) - 1), **fields},
    )
    return replace(Case(asked, answered, trace, SKILL, small_tree()), **changes)


def diagnosis(question_id: str, category: Category, cause: Cause, **changes: Any) -> Diagnosis:
    """A diagnosis without findings."""
    explanation = Explanation(category, cause, f"because of {question_id}", changes.pop("reminder", ""))
    made = Diagnosis(question_id, question_id, "Action Reasoning", f"print-{question_id}", explanation, False, (), {})
    return replace(made, **changes)
