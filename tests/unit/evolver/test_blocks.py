"""EVO-9 and EVO-10: the two blocks that edits can't reach."""

from typing import Any

import pytest

from services.evolver.domain.errors import InvalidRequest, ModelUnavailable
from services.evolver.domain.leaks import NO_LEAKS, LeakIndex
from services.evolver.domain.momentum import UnitChange
from services.evolver.domain.reminders import appendix_reminders, new_reminders, with_reminders
from services.evolver.templates import engine_files, load_templates
from services.evolver.use_cases.ask_model import AskModel
from services.evolver.use_cases.consolidate_appendix import AppendixUpdate, ConsolidateAppendix
from services.evolver.use_cases.ports import Origin
from services.evolver.use_cases.propose_slow_update import ProposeSlowUpdate, SlowUpdate, SlowUpdateJob
from tests.builders.cases import SKILL
from tests.fakes.evolver_fakes import ScriptedModel

TEMPLATES = load_templates(engine_files(None))
ORIGIN = Origin("w", "r")
QUESTION = ("Why does the man in the red coat leave the house early?", "He is late")
LEAKS = LeakIndex.of([QUESTION])


async def add(
    model: ScriptedModel, *reminders: str, text: str = SKILL, threshold: int = 3, leaks: LeakIndex = NO_LEAKS
) -> AppendixUpdate:
    appendix = ConsolidateAppendix(AskModel(model, TEMPLATES, 2), 5000, 12)
    return await appendix.update(text, reminders, threshold, leaks, ORIGIN)


async def test_evo_9_reminders_are_added_once_each() -> None:
    found = await add(ScriptedModel(), "Open the event before.", "- open the EVENT before!", "Count twice.")
    assert found.text == SKILL.replace(
        "<!-- APPENDIX_START -->\n", "<!-- APPENDIX_START -->\n- Open the event before.\n- Count twice.\n"
    )
    assert (found.added_count, found.consolidated, found.errors) == (2, False, ())


async def test_evo_9_a_reminder_that_stands_there_already_changes_nothing() -> None:
    text = with_reminders(SKILL, ["Open the event before."])
    found = await add(ScriptedModel(), "Open the event before", text=text.replace("\n", "\r\n"))
    assert found == AppendixUpdate(text.replace("\n", "\r\n"), 0, False, ())


@pytest.mark.parametrize(
    "reminder", ["x <!-- MOMENTUM_START --> y", "word " * 80, "``` fence", "--> closes", QUESTION[0]]
)
async def test_evo_9_a_reminder_that_breaks_a_rule_is_refused(reminder: str) -> None:
    found = await add(ScriptedModel(), reminder, leaks=LEAKS)
    assert (found.text, found.added_count) == (SKILL, 0)
    assert found.errors


async def test_evo_9_above_the_threshold_the_model_merges_the_list() -> None:
    model = ScriptedModel(evolve__consolidate={"reminders": ["Open both neighbours of the event.", "Count twice."]})
    text = with_reminders(SKILL, ["Open the event before.", "Open the event after.", "Count twice."])
    found = await add(model, "Recount at the end.", text=text)
    assert appendix_reminders(found.text) == ["Open both neighbours of the event.", "Count twice."]
    assert (found.added_count, found.consolidated) == (1, True)
    assert "<limit>\n2\n</limit>" in model.prompts("evolve.consolidate")[0]


@pytest.mark.parametrize(
    "bad",
    [
        {"reminders": ["one thing", "another matter", "third idea here"]},
        {"reminders": ["<!-- APPENDIX_END --> x"]},
        {"reminders": [QUESTION[0]]},
        "no json",
    ],
)
async def test_evo_9_a_merge_that_fails_its_checks_leaves_the_longer_list(bad: Any) -> None:
    text = with_reminders(SKILL, ["Open the event before.", "Look after it.", "Count twice."])
    found = await add(ScriptedModel(evolve__consolidate=bad), "Recount at the end.", text=text, leaks=LEAKS)
    assert len(appendix_reminders(found.text)) == 4
    assert not found.consolidated
    assert found.errors[0].startswith("merge: ")


async def test_evo_9_a_file_that_would_grow_too_long_is_left() -> None:
    appendix = ConsolidateAppendix(AskModel(ScriptedModel(), TEMPLATES, 2), len(SKILL) + 5, 12)
    found = await appendix.update(SKILL, ["A reminder of some length."], 0, NO_LEAKS, ORIGIN)
    assert found.text == SKILL
    assert "max_chars" in found.errors[0]


def test_evo_9_near_doubles_are_one() -> None:
    added, _ = new_reminders(
        ["Always open the event right before the action"], ["Open the event right before the action"]
    )
    assert added == []


def unit(number: int, earlier: bool, later: bool, task_type: str = "Action Reasoning") -> UnitChange:
    return UnitChange(f"u{number}", task_type, earlier, later, f"question {number}")


CHANGES = (unit(1, False, True), unit(2, True, False), unit(3, False, False), unit(4, True, True))


async def slow(model: ScriptedModel, **changes: Any) -> SlowUpdate:
    job = {
        "origin": ORIGIN,
        "skills": {"action-reasoning.md": SKILL, "default-strategy.md": SKILL},
        "changes": CHANGES,
        "history": ("accepted: look before",),
        "leaks": NO_LEAKS,
        **changes,
    }
    return await ProposeSlowUpdate(AskModel(model, TEMPLATES, 2), 5000, 200).propose(SlowUpdateJob(**job))


async def test_evo_10_one_call_writes_the_momentum_of_a_skill_and_nothing_else() -> None:
    model = ScriptedModel(slow__momentum={"momentum": ["Keep opening neighbours.", "Stop at two scenes."]})
    found = await slow(model)
    assert found.skills == {
        "action-reasoning.md": SKILL.replace(
            "<!-- MOMENTUM_START -->\n", "<!-- MOMENTUM_START -->\n- Keep opening neighbours.\n- Stop at two scenes.\n"
        )
    }
    assert (found.errors, found.attempts) == ((), 1)


async def test_evo_10_units_are_sorted_into_four_kinds() -> None:
    model = ScriptedModel(slow__momentum={"momentum": []})
    await slow(model)
    prompt = model.prompts("slow.momentum")[0]
    for tag, number in (("improved", 1), ("regressed", 2), ("persistent", 3), ("stable", 4)):
        assert f"<{tag}>\n- u{number}: question {number}\n</{tag}>" in prompt
    assert "<history>\n- accepted: look before\n</history>" in prompt
    assert "improved: 1\nregressed: 1" in prompt


async def test_evo_10_types_without_their_own_file_write_into_the_default_strategy() -> None:
    model = ScriptedModel(slow__momentum={"momentum": ["Keep going."]})
    found = await slow(model, changes=(*CHANGES, unit(5, False, False, "Counting")))
    assert set(found.skills) == {"action-reasoning.md", "default-strategy.md"}


async def test_evo_10_a_skill_without_news_is_left_without_a_call() -> None:
    model = ScriptedModel()
    assert (await slow(model, changes=(unit(1, True, True),))).skills == {}
    assert model.calls == []


async def test_evo_10_the_previous_block_is_replaced_and_an_empty_answer_empties_it() -> None:
    skill = SKILL.replace("<!-- MOMENTUM_START -->\n", "<!-- MOMENTUM_START -->\n- Old advice.\n")
    model = ScriptedModel(slow__momentum={"momentum": []})
    found = await slow(model, skills={"action-reasoning.md": skill})
    assert found.skills == {"action-reasoning.md": SKILL}
    assert "<previous_momentum>\n- Old advice.\n</previous_momentum>" in model.prompts("slow.momentum")[0]


@pytest.mark.parametrize(
    "lines", [["<!-- APPENDIX_START -->"], ["word " * 50], [QUESTION[0]], ["# heading"], ["a fine sentence"] * 2]
)
async def test_evo_10_a_block_that_breaks_a_rule_leaves_the_skill(lines: list[str]) -> None:
    found = await slow(ScriptedModel(slow__momentum={"momentum": lines}), leaks=LEAKS)
    assert found.skills == {}
    assert found.errors[0].startswith("action-reasoning.md: ")


async def test_evo_10_a_model_that_is_away_is_an_error_of_its_own() -> None:
    with pytest.raises(ModelUnavailable):
        await slow(ScriptedModel(slow__momentum=ModelUnavailable("away")))
    with pytest.raises(InvalidRequest):
        await slow(ScriptedModel(), skills={})
