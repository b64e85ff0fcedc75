"""Rounds whose candidate is a prompt (EVO-12): every type's units in one ladder, and bases shared with skill gates."""

from __future__ import annotations

from dataclasses import replace

import pytest
from videotree.gate.v1 import gate_service_pb2, round_pb2

from services.gate.domain.errors import InvalidRequest
from services.gate.domain.round_events import RoundOutcome
from services.gate.domain.round_spec import RoundOptions, RoundSpec, Target, TypeSpec
from services.gate.domain.verdict import Decision, GateParameters
from services.gate.rpc.translate_round import round_spec_from
from services.gate.use_cases.ports import BaselineKey, BaselineRow, PooledUnit
from services.gate.use_cases.validate_skills import ValidateSkills
from services.skills import text_sha256
from tests.builders.gate_builders import flips, round_spec, scripted, type_spec, unit
from tests.fakes.gate_fakes import InMemoryStore, ScriptedInference, arm_of

TYPES = ("Action", "Count")
SKILLS = {"action.md": "look closely", "default-strategy.md": "search"}
KEYS = {
    "Action": BaselineKey("w", "Action", text_sha256("look closely"), "v1"),
    "Count": BaselineKey("w", "Count", text_sha256("search"), "v1"),
}


def prompt_spec(per_type: int = 6, file: str = "agent.system.md") -> TypeSpec:
    ladder = tuple(unit(task_type, number) for number in range(per_type) for task_type in TYPES)
    return TypeSpec("prompt agent.system", file, "You answer well.", ladder, GateParameters(), Target.PROMPT)


def store_of(spec: TypeSpec) -> InMemoryStore:
    units = {one.unit_id: PooledUnit(one.task_type, one.question_ids, False) for one in spec.ladder}
    store = InMemoryStore({("w", "v1"): SKILLS}, units)
    store.prompts = {("w", "v1"): {"agent.system.md": "You answer."}}
    return store


async def run(spec: RoundSpec, inference: ScriptedInference, store: InMemoryStore) -> RoundOutcome:
    return await ValidateSkills(inference, store).run(spec, lambda event: None)


async def test_evo_12_the_candidate_arm_overrides_the_prompt_and_no_skill() -> None:
    spec = prompt_spec()
    inference = scripted(flips("Action", "W" * 6) | flips("Count", "W" * 6))
    outcome = await run(round_spec([spec]), inference, store_of(spec))
    one = outcome.outcomes[0]
    assert (one.task_type, one.verdict.decision) == ("prompt agent.system", Decision.ACCEPT_CONFIRMED)
    assert one.base_skill_sha256 == text_sha256("You answer.")
    assert one.cand_skill_sha256 == text_sha256("You answer well.")
    for call in inference.calls:
        expected = {} if arm_of(call) == "base" else {"agent.system.md": "You answer well."}
        assert (dict(call.overrides), dict(call.prompt_overrides)) == ({}, expected)
        assert call.run_id == f"train_e0_s1_gate_prompt-agent-system_{arm_of(call)}"


async def test_evo_12_a_prompts_base_is_found_where_the_gates_of_skills_left_it() -> None:
    spec = prompt_spec(per_type=3)
    store = store_of(spec)
    skill = type_spec("Action", [1] * 3)
    await run(round_spec([skill]), scripted(flips("Action", "BNB")), store)
    inference = scripted(flips("Action", "BNB") | flips("Count", "BBB"))
    outcome = await run(round_spec([spec]), inference, store)
    assert outcome.outcomes[0].cache_hits == 3
    assert {call.question_ids[0] for call in inference.calls if arm_of(call) == "base"} == {
        "count-0-q0",
        "count-1-q0",
        "count-2-q0",
    }


async def test_evo_12_what_a_prompts_round_caches_serves_the_gates_of_skills_and_never_its_candidate() -> None:
    spec = prompt_spec(per_type=3)
    store = store_of(spec)
    await run(round_spec([spec]), scripted(flips("Action", "BNB") | flips("Count", "NBN")), store)
    assert {(key, unit_id): row.correct for (key, unit_id), row in store.cached.items()} == {
        (KEYS["Action"], "action-0"): True,
        (KEYS["Action"], "action-1"): False,
        (KEYS["Action"], "action-2"): True,
        (KEYS["Count"], "count-0"): False,
        (KEYS["Count"], "count-1"): True,
        (KEYS["Count"], "count-2"): False,
    }
    inference = scripted(flips("Action", "BNB"))
    outcome = await run(round_spec([type_spec("Action", [1] * 3)]), inference, store)
    assert outcome.outcomes[0].cache_hits == 3
    assert {arm_of(call) for call in inference.calls} == {"cand"}


@pytest.mark.parametrize(
    "other",
    [
        replace(KEYS["Action"], prompts_version="v2"),
        replace(KEYS["Action"], skill_sha256=text_sha256("an earlier skill")),
        replace(KEYS["Action"], task_type="Count"),
        replace(KEYS["Action"], task_type="prompt agent.system", skill_sha256=text_sha256("You answer.")),
    ],
)
async def test_evo_12_a_base_of_other_prompts_skills_or_types_is_not_used(other: BaselineKey) -> None:
    spec = prompt_spec(per_type=2)
    store = store_of(spec)
    await store.cache_results([BaselineRow(other, "action-0", True, "earlier")])
    outcome = await run(round_spec([spec]), scripted(flips("Action", "NN") | flips("Count", "NN")), store)
    assert outcome.outcomes[0].cache_hits == 0


async def test_evo_12_a_prompt_that_the_version_lacks_is_refused_before_any_call() -> None:
    spec = prompt_spec(file="agent.other.md")
    inference = scripted({})
    with pytest.raises(InvalidRequest, match=r"has no file agent\.other\.md") as raised:
        await run(round_spec([spec]), inference, store_of(spec))
    assert (raised.value.field, inference.calls) == ("specs[0].target_file", [])


def test_evo_12_a_prompt_shares_its_round_with_no_other_candidate() -> None:
    with pytest.raises(InvalidRequest, match="only candidate of its round") as raised:
        round_spec([type_spec("Action", [1]), prompt_spec()])
    assert raised.value.field == "specs[1].target"


def test_evo_12_the_target_of_a_spec_is_read_and_an_unknown_one_refused() -> None:
    def request(target: int) -> gate_service_pb2.ValidateSkillsRequest:
        spec = round_pb2.GateSpec(
            task_type="A",
            target_file="a.md",
            candidate_text="x",
            ladder=[round_pb2.LadderUnit(unit_id="u", question_ids=["q"])],
        )
        spec.target = target  # type: ignore[assignment]  # any number can come over the wire
        return gate_service_pb2.ValidateSkillsRequest(
            workspace="w", run_id="r", dataset="d", skills_version="v1", prompts_version="v1", specs=[spec]
        )

    read = [round_spec_from(request(number), GateParameters(), RoundOptions()).types[0].target for number in (0, 1, 2)]
    assert read == [Target.SKILL, Target.SKILL, Target.PROMPT]
    with pytest.raises(InvalidRequest) as raised:
        round_spec_from(request(7), GateParameters(), RoundOptions())
    assert raised.value.field == "specs[0].target"
