"""`sim-dice`: knows the gold answers and is right with a stated probability. For statistics and benchmarks."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from services.simulator.domain.answers import Answers
from services.simulator.domain.conversation import Conversation, content_text, read_conversation
from services.simulator.domain.draws import Draws
from services.simulator.domain.world import DiceWorld, World


def probability_right(dice: DiceWorld, task_type: str, prompt: str) -> float:
    """The share right for a type, with the shift of every effect whose phrase the prompt holds, within [0, 1]."""
    shift = sum(
        effect.shift
        for effect in dice.effects
        if effect.task_type in ("", task_type) and re.search(effect.phrase, prompt, re.IGNORECASE)
    )
    return min(1.0, max(0.0, dice.right.get(task_type, dice.default) + shift))


def answer_as_dice(messages: Sequence[dict[str, Any]], seed: int | None, world: World, answers: Answers) -> str:
    """An answer at once, without a tool: as a tool call where the prompt has tools, as plain JSON where not."""
    conversation = read_conversation(messages)
    draws = Draws(world.seed, "dice", seed, conversation.identity)
    letter = _letter(conversation, messages, world, answers, draws)
    if not conversation.tools:
        return json.dumps({"answer": letter, "reasoning": "The dice say so."})
    action = {"tool": "submit_answer", "args": {"answer": letter, "evidence": [], "reasoning": "The dice say so."}}
    return json.dumps({"reflect": "", "plan": "Answer at once.", "action": action})


def _letter(
    conversation: Conversation, messages: Sequence[dict[str, Any]], world: World, answers: Answers, draws: Draws
) -> str:
    letters = [option.letter for option in conversation.options]
    gold = answers.find(conversation.question, conversation.options)
    if gold is None or not gold.letter:
        return draws.choice("guess", letters) if letters else ""
    prompt = "\n".join(content_text(message) for message in messages if message.get("role") != "assistant")
    if draws.happens("right", probability_right(world.dice, gold.task_type, prompt)):
        return gold.letter
    return draws.choice("wrong", [letter for letter in letters if letter != gold.letter] or letters)
