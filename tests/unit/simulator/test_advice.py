import pytest

from services.simulator.domain.advice import active, advised, advising_sentence, needed
from services.simulator.domain.draws import Draws
from services.simulator.domain.world import PROMPT_TYPE, AgentWorld
from tests.builders.simulated_world import sample_knowledge, sample_skills

WORLD = sample_knowledge().world


HELPFUL = [one for one in WORLD.evolve.proposals if one.quality == "helpful"]


@pytest.mark.parametrize("proposal", [one for one in HELPFUL if PROMPT_TYPE not in one.task_types])
def test_every_helpful_proposal_of_the_sample_advises_what_its_types_need(proposal: object) -> None:
    needs = {
        "Temporal Perception": {"look_after", "look_before"},
        "Counting Problem": {"count_children"},
        "Attribute Perception": {"check_frames"},
        "Action Reasoning": {"search_options"},
        "Object Recognition": {"search_options", "mind_negation"},
    }
    for task_type in proposal.task_types:  # type: ignore[attr-defined]
        assert advised(proposal.text, WORLD.advice) == needs[task_type]  # type: ignore[attr-defined]


def test_evo_12_a_helpful_sentence_for_a_prompt_advises_what_several_types_need() -> None:
    misleading = {entry.behaviour for entry in WORLD.advice if entry.misleads}
    of_prompts = [one for one in HELPFUL if PROMPT_TYPE in one.task_types]
    assert of_prompts
    for proposal in of_prompts:
        behaviours = advised(proposal.text, WORLD.advice)
        assert len(behaviours) >= 2
        assert not behaviours & misleading


def test_neutral_proposals_advise_nothing_and_harmful_ones_mislead() -> None:
    misleading = {entry.behaviour for entry in WORLD.advice if entry.misleads}
    for proposal in WORLD.evolve.proposals:
        found = advised(proposal.text, WORLD.advice)
        if proposal.quality == "neutral":
            assert not found
        elif proposal.quality == "harmful":
            assert found
            assert found <= misleading


def test_v1_skills_leave_the_advice_to_be_learned_except_for_object_recognition() -> None:
    found = {name: advised(text, WORLD.advice) for name, text in sample_skills().items()}
    assert found.pop("object-recognition.md") == {"search_options", "mind_negation"}
    assert set(found.values()) == {frozenset()}


def test_a_denied_phrase_is_no_advice() -> None:
    assert advised("Open the next event.", WORLD.advice) == {"look_after"}
    assert advised("Never open the next event.", WORLD.advice) == frozenset()
    assert advised("Never guess. Open the next event.", WORLD.advice) == {"look_after"}


def test_the_advising_sentence_is_found() -> None:
    text = "First search. Then open the next event! Submit."
    assert advising_sentence(text, frozenset({"look_after"}), WORLD.advice) == "Then open the next event!"
    assert advising_sentence(text, frozenset({"check_frames"}), WORLD.advice) == ""


def test_advice_is_followed_in_the_share_the_world_says() -> None:
    agent = AgentWorld(follow_rate=0.8, spontaneous_rate=0.0)
    shown = [
        active(["Open the next event."], "q", WORLD.advice, WORLD.needs, agent, Draws(index)) for index in range(2000)
    ]
    assert abs(sum(bool(one) for one in shown) / 2000 - 0.8) < 0.03


def test_a_question_needs_what_the_first_matching_pattern_says() -> None:
    assert needed("What does he do right after he waves?", WORLD.needs) == ("look_after",)
    assert needed("Which of these does the vet not use?", WORLD.needs) == ("mind_negation", "search_options")
    assert needed("Where does the vet weigh a rabbit?", WORLD.needs) == ()
