"""`sim-agent`: walks the tree with the tools it was told of and submits the option the text supports best."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from services.simulator.domain import advice
from services.simulator.domain.conversation import Conversation, read_conversation
from services.simulator.domain.draws import Draws
from services.simulator.domain.memory import remember
from services.simulator.domain.reading import read_question
from services.simulator.domain.support import Support, supports
from services.simulator.domain.walk import Situation, next_action
from services.simulator.domain.words import Lexicon
from services.simulator.domain.world import World


def answer_as_agent(messages: Sequence[dict[str, Any]], seed: int | None, world: World, lexicon: Lexicon) -> str:
    """The next turn of the conversation, as JSON text (now and then broken, where the world says so).

    The chance behind a conversation is drawn from the world seed, the request seed and what all turns of it share, so
    that its turns agree with each other.
    """
    conversation = read_conversation(messages)
    draws = Draws(world.seed, "agent", seed, conversation.identity)
    situation = _situation(conversation, world, lexicon, draws)
    action = next_action(situation) if conversation.steps_left > 0 and conversation.tools else None
    if action is not None:
        turn = _turn(len(conversation.steps), action.plan, action.tool, action.args)
    else:
        turn = _submission(conversation, situation, world, draws)
    if draws.happens(f"malformed/{conversation.turns}", world.agent.malformed_rate):
        return turn[: max(8, len(turn) // 3)]
    return turn


def _situation(conversation: Conversation, world: World, lexicon: Lexicon, draws: Draws) -> Situation:
    texts = (conversation.instructions, *conversation.skills)
    behaviours = advice.active(texts, conversation.question, world.advice, world.needs, world.agent, draws)
    return Situation(
        reading=read_question(conversation.question, lexicon),
        options=conversation.options,
        memory=remember(conversation),
        behaviours=behaviours,
        tools=conversation.tools,
        catalogue=conversation.catalogue,
        lexicon=lexicon,
    )


def _turn(done: int, plan: str, tool: str, args: dict[str, Any]) -> str:
    reflect = "Nothing seen yet but the overview." if not done else f"{done} observations so far."
    return json.dumps({"reflect": reflect, "plan": plan, "action": {"tool": tool, "args": args}}, ensure_ascii=False)


def _submission(conversation: Conversation, situation: Situation, world: World, draws: Draws) -> str:
    ranked = ranking(situation, world, draws)
    if not ranked:
        answer: dict[str, Any] = {"answer": "", "evidence": [], "reasoning": "The question has no options."}
    else:
        chosen = ranked[1] if len(ranked) > 1 and draws.happens("slip", world.agent.slip_rate) else ranked[0]
        answer = {
            "answer": chosen.option.letter,
            "evidence": [chosen.node_id] if chosen.node_id else [],
            "reasoning": f"What was seen supports {chosen.option.text!r} best.",
        }
    if not conversation.tools:
        return json.dumps({"answer": answer["answer"], "reasoning": answer["reasoning"]}, ensure_ascii=False)
    return _turn(len(conversation.steps), "Answer with what was seen.", "submit_answer", answer)


def ranking(situation: Situation, world: World, draws: Draws) -> list[Support]:
    """The options by support plus noise, best first."""
    noisy = [
        (one.value + world.agent.noise * draws.normal(f"noise/{one.option.letter}"), one) for one in supports(situation)
    ]
    return [one for _, one in sorted(noisy, key=lambda pair: (-pair[0], pair[1].option.letter))]
