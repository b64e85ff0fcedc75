import asyncio

import pytest
from videotree.gate.v1 import verdict_pb2

from services.gate.domain.errors import (
    AllUnitsExcluded,
    ArmFailed,
    ArmRefused,
    GuardTripped,
    InvalidRequest,
    NeighbourFailed,
    UnknownLadderUnit,
)
from services.gate.domain.guard import GuardLimits
from services.gate.domain.round_events import ArmResolved, Event, PairConsumed, RoundOutcome, VerdictFrozen
from services.gate.domain.round_spec import RoundOptions, RoundSpec
from services.gate.domain.verdict import Decision
from services.gate.rpc.translate_round import outcome_to
from services.gate.use_cases.ports import ArmCall, BaselineKey, BaselineRow, PooledUnit
from services.gate.use_cases.validate_skills import ValidateSkills
from services.skills import text_sha256
from tests.builders.gate_builders import flips, no_guard, round_spec, scripted, store_for, type_spec
from tests.fakes.gate_fakes import InMemoryStore, ScriptedInference, arm_of


async def run(
    spec: RoundSpec, inference: ScriptedInference, store: InMemoryStore | None = None
) -> tuple[RoundOutcome, list[Event]]:
    events: list[Event] = []
    use_case = ValidateSkills(inference, store or store_for(spec.types))
    return await use_case.run(spec, events.append), events


async def test_gat_2_twelve_straight_wins_are_confirmed_after_eight() -> None:
    one = type_spec("Action", [1] * 12)
    outcome, events = await run(round_spec([one]), scripted(flips("Action", "W" * 12)))
    verdict = outcome.outcomes[0].verdict
    assert (verdict.decision, verdict.n_used) == (Decision.ACCEPT_CONFIRMED, 8)
    assert verdict.e == pytest.approx(28.4444, abs=1e-3)
    assert [event.row.rank for event in events if isinstance(event, PairConsumed)] == list(range(8))
    assert [event.verdict for event in events if isinstance(event, VerdictFrozen)] == [verdict]


async def test_gat_12_the_outcome_reports_launched_consumed_and_observed() -> None:
    one = type_spec("Action", [1] * 12)
    outcome, _ = await run(round_spec([one]), scripted(flips("Action", "W" * 12)))
    result = outcome.outcomes[0]
    assert (result.n_planned, result.launched, result.verdict.n_used) == (12, 12, 8)
    assert [unit.consumed for unit in result.observed] == [True] * 8 + [False] * 4
    assert (result.base_accuracy, result.cand_accuracy) == (0.0, 1.0)
    assert result.questions_run == result.usage.model_calls == 24
    assert result.cand_skill_sha256 == text_sha256("candidate for Action")
    assert result.detectable_gain == pytest.approx(0.864, abs=0.002), "nearly all of 12 units must be won"
    assert outcome.peak_in_flight == 24


async def test_gat_5_each_arm_runs_under_its_own_id_salt_and_skills() -> None:
    inference = scripted({})
    await run(round_spec([type_spec("Action", [1] * 4)]), inference)
    base, cand = inference.calls[0], inference.calls[1]
    assert (base.run_id, base.salt, dict(base.overrides)) == ("train_e0_s1_gate_action_base", "gate-base", {})
    assert (cand.run_id, cand.salt) == ("train_e0_s1_gate_action_cand",) * 2
    assert cand.overrides == {"action.md": "candidate for Action"}


async def test_gat_5_the_base_salt_can_be_none() -> None:
    inference = scripted({})
    await run(round_spec([type_spec("Action", [1] * 4)], RoundOptions(base_salt=None)), inference)
    assert {call.salt for call in inference.calls if arm_of(call) == "base"} == {None}


@pytest.mark.parametrize("salt", [None, "another"])
async def test_gat_5_a_base_with_another_salt_is_never_taken_for_the_fixed_snapshot(salt: str | None) -> None:
    one = type_spec("Action", [1] * 4)
    store = store_for([one])
    await store.cache_results([BaselineRow(cached_key(), "action-0", True, "earlier")])
    outcome, _ = await run(round_spec([one], RoundOptions(base_salt=salt)), scripted(flips("Action", "NBBB")), store)
    assert outcome.outcomes[0].cache_hits == 0
    assert [unit_id for _, unit_id in store.cached] == ["action-0"]


def cached_key(task_type: str = "Action") -> BaselineKey:
    return BaselineKey("w", task_type, text_sha256("look closely"), "v1")


async def test_gat_5_a_cached_base_needs_no_inference_and_no_slot() -> None:
    one = type_spec("Action", [1] * 12)
    store = store_for([one])
    await store.cache_results([BaselineRow(cached_key(), unit.unit_id, False, "earlier") for unit in one.ladder])
    inference = scripted(flips("Action", "W" * 12))
    outcome, events = await run(round_spec([one], RoundOptions(concurrency=1)), inference, store)
    assert {arm_of(call) for call in inference.calls} == {"cand"}
    assert (outcome.outcomes[0].cache_hits, outcome.outcomes[0].verdict.n_used) == (12, 8)
    assert sum(isinstance(event, ArmResolved) and event.cached for event in events) == 12
    assert outcome.outcomes[0].base_infra_rate is None


async def test_gat_5_a_fresh_base_is_folded_and_cached() -> None:
    one = type_spec("Action", [2, 1, 1, 1])
    store = store_for([one])
    await run(round_spec([one]), scripted(flips("Action", "BNLW")), store)
    rows = {unit_id: row for (_, unit_id), row in store.cached.items()}
    assert {unit_id: row.correct for unit_id, row in rows.items()} == {
        "action-0": True,
        "action-1": False,
        "action-2": True,
        "action-3": False,
    }
    assert {row.run_id for row in rows.values()} == {"train_e0_s1_gate_action_base"}
    assert {key for key, _ in store.cached} == {cached_key()}


async def test_gat_5_fresh_bases_are_written_in_groups_and_all_of_them_before_the_round_ends() -> None:
    one = type_spec("Action", [1] * 60)
    store = store_for([one])
    outcome, _ = await run(round_spec([one]), scripted(flips("Action", "W" * 6 + "B" * 54)), store)
    assert outcome.outcomes[0].verdict.n_used == 60
    assert sum(store.writes) == len(store.cached) == 60
    assert len(store.writes) <= 20


async def test_gat_6_a_base_with_a_fault_is_never_cached() -> None:
    one = type_spec("Action", [1] * 5)
    store = store_for([one])
    await run(round_spec([one], no_guard()), scripted(flips("Action", "FWWWW")), store)
    assert {unit_id for _, unit_id in store.cached} == {"action-1", "action-2", "action-3", "action-4"}


async def test_gat_6_the_guard_aborts_with_the_figures_before_that_arm_is_cached() -> None:
    one = type_spec("Action", [1] * 30)
    results = {(unit.unit_id, "base"): "error" if rank in (3, 5) else "right" for rank, unit in enumerate(one.ladder)}
    results |= {(unit.unit_id, "cand"): "right" for unit in one.ladder}
    store = store_for([one])
    inference = scripted(results)
    with pytest.raises(GuardTripped) as raised:
        await run(round_spec([one], RoundOptions(concurrency=1)), inference, store)
    assert raised.value.metadata == {"task_type": "Action", "faults": "2", "questions": "11", "limit": "0.1"}
    assert inference.calls[-1].question_ids == ("action-5-q0",)
    assert len(inference.calls) == 11


async def test_gat_6_an_arm_that_trips_the_guard_is_not_cached_though_one_of_its_questions_was_right() -> None:
    one = type_spec("Action", [9, 2] + [1] * 10)
    store = store_for([one])

    async def reply(call: ArmCall) -> list[tuple[bool, str]]:
        fine = [(True, "finished")] * len(call.question_ids)
        return [(False, "error"), *fine[1:]] if len(call.question_ids) == 2 else fine

    options = RoundOptions(concurrency=9, guard=GuardLimits(0.04, 10))
    with pytest.raises(GuardTripped):
        await run(round_spec([one], options), ScriptedInference(reply), store)
    assert "action-1" not in {unit_id for _, unit_id in store.cached}


async def test_gat_6_the_guard_needs_ten_questions() -> None:
    one = type_spec("Action", [1] * 4)
    outcome, _ = await run(round_spec([one]), scripted(flips("Action", "EEEN")))
    assert outcome.outcomes[0].excluded == 3
    assert outcome.outcomes[0].cand_infra_rate == 0.75


async def test_gat_6_a_cached_base_is_not_in_the_guards_denominator() -> None:
    one = type_spec("Action", [1] * 15)
    store = store_for([one])
    await store.cache_results([BaselineRow(cached_key(), unit.unit_id, True, "earlier") for unit in one.ladder])
    inference = scripted(flips("Action", "B" * 8 + "EE" + "B" * 5))
    with pytest.raises(GuardTripped) as raised:
        await run(round_spec([one], RoundOptions(concurrency=1)), inference, store)
    assert raised.value.metadata["questions"] == "10"


async def test_gat_6_a_type_of_nothing_but_faults_is_a_failed_precondition() -> None:
    one = type_spec("Action", [1] * 4)
    with pytest.raises(AllUnitsExcluded, match="check the inference infrastructure"):
        await run(round_spec([one]), scripted(flips("Action", "EFFE")))


async def test_gat_6_an_unparsable_candidate_is_rejected_and_does_not_abort_the_round_of_others() -> None:
    spoiled, fine = type_spec("Spoiled", [1] * 20), type_spec("Fine", [1] * 20)
    results = flips("Spoiled", "P" * 20) | flips("Fine", "W" * 20)
    outcome, _ = await run(round_spec([spoiled, fine]), scripted(results))
    assert {one.task_type: one.verdict.decision for one in outcome.outcomes} == {
        "Fine": Decision.ACCEPT_CONFIRMED,
        "Spoiled": Decision.REJECT_UNSTABLE,
    }
    assert outcome.outcomes[1].cand_infra_rate == 1.0


@pytest.mark.parametrize(("limit", "accepted"), [(0.10, True), (0.05, False)])
async def test_gat_6_a_rounds_limit_of_faults_is_the_candidates_limit_of_parse_errors(
    limit: float, accepted: bool
) -> None:
    """Nine units of two questions, one of 18 unparsable; the outcome says so in words and figures."""
    one = type_spec("Action", [2] * 9)

    async def reply(call: ArmCall) -> list[tuple[bool, str]]:
        if arm_of(call) == "base":
            return [(False, "finished")] * 2
        return [(True, "finished"), (True, "parse_error" if call.question_ids[0] == "action-0-q0" else "finished")]

    options = RoundOptions(guard=GuardLimits(limit))
    outcome, _ = await run(round_spec([one], options), ScriptedInference(reply))
    verdict = outcome_to(outcome).outcome.outcomes[0].verdict
    expected = Decision.ACCEPT_CONFIRMED if accepted else Decision.REJECT_UNSTABLE
    assert verdict.decision == verdict_pb2.Decision.Value(f"DECISION_{expected}")
    assert (verdict.cand_parse_errors, verdict.cand_questions, verdict.max_parse_error_share) == (1, 18, limit)
    assert ("1 of the candidate's 18 questions were unparsable (5.6%), more than 5.0%" in verdict.reason) != accepted


async def test_gat_7_launches_go_round_the_types_rank_by_rank_base_first() -> None:
    types = [type_spec("A", [1] * 3), type_spec("B", [1] * 2)]
    inference = scripted(flips("A", "BBB") | flips("B", "BB"))
    await run(round_spec(types, RoundOptions(concurrency=1)), inference)
    order = [(call.question_ids[0], str(arm_of(call))) for call in inference.calls[:4]]
    assert order == [("a-0-q0", "base"), ("a-0-q0", "cand"), ("b-0-q0", "base"), ("b-0-q0", "cand")]


async def test_gat_7_a_unit_larger_than_the_width_is_worked_on_within_the_width() -> None:
    inference = scripted(flips("A", "BBBB"))
    outcome, _ = await run(round_spec([type_spec("A", [5, 2, 1, 3])], RoundOptions(concurrency=2)), inference)
    assert {(len(call.question_ids), call.concurrency) for call in inference.calls} <= {(5, 2), (2, 2), (1, 1), (3, 2)}
    assert (len(inference.calls[0].question_ids), inference.calls[0].concurrency) == (5, 2)
    assert outcome.peak_in_flight == 2


async def test_gat_8_a_frozen_types_queue_is_dropped_without_a_call() -> None:
    types = [type_spec("A", [1] * 3), type_spec("B", [1] * 12)]
    inference = scripted(flips("A", "BBB") | flips("B", "W" * 12))
    outcome, _ = await run(round_spec(types, RoundOptions(concurrency=1)), inference)
    a, b = outcome.outcomes
    assert (a.verdict.decision, a.verdict.n_used, a.launched) == (Decision.REJECT_FUTILE, 1, 1)
    assert (b.verdict.decision, b.launched) == (Decision.ACCEPT_CONFIRMED, 8)
    assert len(inference.calls) == 2 + 16


async def test_gat_8_what_was_in_flight_at_the_freeze_is_cached_but_not_counted() -> None:
    one = type_spec("Action", [1] * 4)
    store = store_for([one])
    delays = {("action-3", arm): 0.04 for arm in ("base", "cand")} | {("action-0", "cand"): 0.01}
    outcome, events = await run(round_spec([one]), scripted(flips("Action", "LLLB"), delays), store)
    assert (outcome.outcomes[0].verdict.decision, outcome.outcomes[0].verdict.n_used) == (Decision.REJECT_FUTILE, 1)
    assert "action-3" in {unit_id for _, unit_id in store.cached}
    late = [event for event in events if isinstance(event, ArmResolved) and event.after_freeze]
    assert {(event.unit_id, str(event.arm)) for event in late} >= {("action-3", "base"), ("action-3", "cand")}


async def test_gat_8_cancel_in_flight_ends_the_type_at_once() -> None:
    one = type_spec("Action", [1] * 4)
    delays = {("action-3", arm): 60.0 for arm in ("base", "cand")} | {("action-0", "cand"): 0.01}
    inference = scripted(flips("Action", "LLLB"), delays)
    outcome, _ = await run(round_spec([one], RoundOptions(cancel_in_flight=True)), inference)
    assert len(inference.cancelled) == 2
    assert outcome.outcomes[0].launched == 4
    assert [unit.unit_id for unit in outcome.outcomes[0].observed] == ["action-0", "action-1", "action-2"]


async def test_gat_8_max_speculation_bounds_the_look_ahead() -> None:
    one = type_spec("Action", [1] * 10)
    inference = scripted(flips("Action", "W" * 10), {("action-0", "cand"): 0.05})
    outcome, _ = await run(round_spec([one], RoundOptions(max_speculation=2)), inference)
    before_head = [call.question_ids[0] for call in inference.calls[:6]]
    assert sorted(set(before_head)) == ["action-0-q0", "action-1-q0", "action-2-q0"]
    assert outcome.outcomes[0].verdict.n_used == 8


@pytest.mark.parametrize(("status", "kind"), [("UNAVAILABLE", ArmFailed), ("NOT_FOUND", ArmRefused)])
async def test_gat_7_one_failing_arm_cancels_all_siblings_and_is_named(status: str, kind: type[ArmFailed]) -> None:
    types = [type_spec("A", [1] * 5), type_spec("B", [1] * 5)]

    async def reply(call: ArmCall) -> list[tuple[bool, str]]:
        if call.question_ids == ("b-2-q0",) and arm_of(call) == "cand":
            await asyncio.sleep(0.01)
            raise NeighbourFailed("inference is away", status=status)
        await asyncio.sleep(60)
        return [(True, "finished")]

    inference = ScriptedInference(reply)
    with pytest.raises(kind) as raised:
        await run(round_spec(types), inference)
    assert type(raised.value) is kind
    assert raised.value.metadata | {"task_type": "B", "unit_id": "b-2", "arm": "cand"} == raised.value.metadata
    assert len(inference.cancelled) == 19
    assert inference.open == 0
    assert len(asyncio.all_tasks()) == 1


async def test_gat_11_a_cancelled_round_leaves_nothing_in_the_background() -> None:
    one = type_spec("Action", [1] * 6)
    inference = scripted({}, {(unit.unit_id, arm): 60.0 for unit in one.ladder for arm in ("base", "cand")})
    task = asyncio.create_task(run(round_spec([one]), inference))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (len(inference.cancelled), inference.open) == (12, 0)
    assert len(asyncio.all_tasks()) == 1


async def test_a_failing_cache_write_ends_the_round() -> None:
    one = type_spec("Action", [1] * 6)

    class FullStore(InMemoryStore):
        async def cache_results(self, rows: object) -> None:
            raise NeighbourFailed("disk full", status="RESOURCE_EXHAUSTED")

    store = FullStore(store_for([one]).files, store_for([one]).units)
    with pytest.raises(NeighbourFailed, match="disk full"):
        await run(round_spec([one]), scripted(flips("Action", "BNBNBN")), store)


async def test_gat_9_a_ladder_with_unknown_units_lists_up_to_five() -> None:
    one = type_spec("Action", [1] * 9)
    store = store_for([one])
    store.units = {"action-0": store.units["action-0"]}
    with pytest.raises(UnknownLadderUnit, match="action-1, action-2, action-3, action-4, action-5 and 3 more"):
        await run(round_spec([one]), scripted({}), store)


@pytest.mark.parametrize(
    ("pooled", "field"),
    [
        (PooledUnit("Action", ("action-0-q0",), True), "specs[0].ladder[0].unit_id"),
        (PooledUnit("Other", ("action-0-q0",), False), "specs[0].ladder[0].unit_id"),
        (PooledUnit("Action", ("another",), False), "specs[0].ladder[0].question_ids"),
    ],
)
async def test_gat_9_held_out_foreign_or_altered_units_are_refused(pooled: PooledUnit, field: str) -> None:
    one = type_spec("Action", [1] * 4)
    store = store_for([one])
    store.units = dict(store.units) | {"action-0": pooled}
    inference = scripted({})
    with pytest.raises(InvalidRequest) as raised:
        await run(round_spec([one]), inference, store)
    assert (raised.value.field, inference.calls) == (field, [])


async def test_gat_14_latency_cannot_be_seen_in_the_outcome() -> None:
    one = type_spec("Action", [1] * 9)
    results = flips("Action", "WNWLBWWWW")
    quick_wins = {
        (unit.unit_id, "cand"): 0.0 if results[unit.unit_id, "cand"] == "right" else 0.01 for unit in one.ladder
    }
    slow_wins = {key: 0.01 - delay for key, delay in quick_wins.items()}
    seen = []
    for delays in (quick_wins, slow_wins, {}):
        outcome, _ = await run(round_spec([one]), scripted(results, delays))
        seen.append((outcome.outcomes[0].verdict, outcome.outcomes[0].evidence))
    assert seen[0] == seen[1] == seen[2]
