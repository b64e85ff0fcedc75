"""Arrival order can't be seen: GAT-4, by shuffling."""

import asyncio
import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from services.gate.domain.errors import AllUnitsExcluded
from services.gate.domain.evidence import Mixture, log_evidence
from services.gate.domain.pessimistic import hidden_loss, reread
from services.gate.domain.prefix import EvidenceRow, Prefix
from services.gate.domain.round_events import RoundOutcome
from services.gate.domain.round_spec import RoundOptions
from services.gate.domain.stability import Stability
from services.gate.domain.unit_result import Arm, ArmResult, ParseCount
from services.gate.domain.verdict import Decision, ExitRule, GateParameters, Verdict
from services.gate.use_cases.ports import ArmCall
from services.gate.use_cases.validate_skills import ValidateSkills
from tests.builders.gate_builders import no_guard, round_spec, store_for, type_spec
from tests.fakes.gate_fakes import ScriptedInference, arm_of

WEIGHTED = [ArmResult.RIGHT] * 4 + [ArmResult.WRONG] * 4 + [ArmResult.ERROR, ArmResult.UNPARSABLE]
PAIRS = st.lists(st.tuples(st.sampled_from(WEIGHTED), st.sampled_from(WEIGHTED)), min_size=1, max_size=40)
# A helpful candidate reaches the early accepts that a fair one hardly ever does.
LOPSIDED = st.lists(
    st.sampled_from(
        [(ArmResult.WRONG, ArmResult.RIGHT)] * 4
        + [
            (ArmResult.RIGHT, ArmResult.UNPARSABLE),
            (ArmResult.RIGHT, ArmResult.WRONG),
            (ArmResult.ERROR, ArmResult.RIGHT),
        ]
    ),
    min_size=4,
    max_size=30,
)
PARAMETERS = st.builds(
    GateParameters,
    mixture=st.sampled_from(Mixture),
    e_confirm=st.sampled_from([5.0, 20.0]),
    delta_min=st.sampled_from([0.0, 0.02, 0.3]),
    w_net_min=st.integers(0, 4),
)
Pair = tuple[ArmResult, ArmResult]


def verdict_or_none(prefix: Prefix) -> Verdict | None:
    try:
        return prefix.verdict
    except AllUnitsExcluded:
        return None


def consumed(pairs: Sequence[Pair], order: Sequence[int], parameters: GateParameters) -> tuple[object, ...]:
    prefix = Prefix("t", [f"u{i}" for i in range(len(pairs))], parameters)
    seen: list[EvidenceRow] = []
    for index in order:
        rank, arm = divmod(index, 2)
        seen.extend(prefix.resolve(f"u{rank}", (Arm.BASE, Arm.CAND)[arm], pairs[rank][arm]))
    assert tuple(seen) == prefix.rows
    return prefix.rows, verdict_or_none(prefix), prefix.excluded, repr(prefix.rows)


@settings(max_examples=150, deadline=None)
@given(PAIRS | LOPSIDED, PARAMETERS, st.randoms(use_true_random=False))
def test_gat_4_any_arrival_order_gives_the_same_rows_and_verdict(
    pairs: list[Pair], parameters: GateParameters, rng: random.Random
) -> None:
    order = list(range(2 * len(pairs)))
    reference = consumed(pairs, order, parameters)
    for _ in range(3):
        rng.shuffle(order)
        assert consumed(pairs, order, parameters) == reference


@settings(max_examples=150, deadline=None)
@given(PAIRS | LOPSIDED, PARAMETERS)
def test_gat_4_consumption_is_the_plain_sequential_reading(pairs: list[Pair], parameters: GateParameters) -> None:
    rows, verdict, *_ = consumed(pairs, range(2 * len(pairs)), parameters)
    expected = sequentially(pairs, parameters)
    if verdict is None:
        assert expected is None
        return
    assert isinstance(verdict, Verdict)
    assert (verdict.decision, verdict.wins, verdict.losses, verdict.n_used, len(rows)) == expected  # type: ignore[arg-type]


def sequentially(pairs: Sequence[Pair], parameters: GateParameters) -> tuple[Decision, int, int, int, int] | None:
    """The gate as one would write it without any concurrency."""
    rule, wins, losses, used, hidden, unparsable = ExitRule(parameters), 0, 0, 0, 0, 0
    for rank, (base, cand) in enumerate(pairs):
        unparsable += cand is ArmResult.UNPARSABLE
        if base.is_infra or cand.is_infra:
            hidden += hidden_loss(base, cand)
        else:
            used += 1
            wins += (base, cand) == (ArmResult.WRONG, ArmResult.RIGHT)
            losses += (base, cand) == (ArmResult.RIGHT, ArmResult.WRONG)
        if used:
            log_e = log_evidence(wins, losses, parameters.mixture)
            decision = rule.decide(log_e, wins, losses, used, len(pairs) - rank - 1)
            decision = reread(decision, rule, wins, losses, Stability(hidden, ParseCount(unparsable, rank + 1)))
            if decision.terminal:
                return decision, wins, losses, used, rank + 1
    if all(cand is ArmResult.UNPARSABLE and not base.is_infra for base, cand in pairs):
        return Decision.REJECT_UNSTABLE, 0, 0, 0, len(pairs)
    return None


@settings(max_examples=150, deadline=None)
@given(PAIRS | LOPSIDED, PARAMETERS)
def test_gat_6_no_accept_fails_the_pessimistic_reading_or_the_limit_of_parse_errors(
    pairs: list[Pair], parameters: GateParameters
) -> None:
    rows, verdict, *_ = consumed(pairs, range(2 * len(pairs)), parameters)
    if isinstance(verdict, Verdict) and verdict.decision.accepts:
        hidden = sum(hidden_loss(row.base, row.cand) for row in rows)  # type: ignore[attr-defined]
        assert log_evidence(verdict.wins, verdict.losses + hidden, parameters.mixture) >= 1.0986
        assert verdict.wins - verdict.losses - hidden >= parameters.w_net_min
        assert 10 * sum(row.cand is ArmResult.UNPARSABLE for row in rows) <= len(rows)  # type: ignore[attr-defined]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(LOPSIDED | PAIRS, min_size=1, max_size=3),
    st.integers(1, 9),
    st.none() | st.integers(0, 5),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_gat_4_width_latency_and_speculation_cannot_be_seen_in_a_round(
    tables: list[list[Pair]], width: int, speculation: int | None, cancel: bool, rng: random.Random
) -> None:
    wide = outcome_of(tables, RoundOptions(concurrency=64), rng)
    other = outcome_of(tables, RoundOptions(width, cancel, speculation), rng)
    assert wide == other


def outcome_of(tables: list[list[Pair]], options: RoundOptions, rng: random.Random) -> object:
    types = [type_spec(f"T{i}", [1] * len(table)) for i, table in enumerate(tables)]

    async def reply(call: ArmCall) -> list[tuple[bool, str]]:
        for _ in range(rng.randrange(12)):
            await asyncio.sleep(0)
        lane, rank, _ = call.question_ids[0].split("-")
        result = tables[int(lane[1:])][int(rank)][arm_of(call) == Arm.CAND]
        return [(result is ArmResult.RIGHT, result.value if result.is_infra else "finished")]

    async def go() -> RoundOutcome:
        return await ValidateSkills(ScriptedInference(reply), store_for(types)).run(
            round_spec(types, no_guard(options)), lambda _: None
        )

    try:
        outcome = asyncio.run(go())
    except AllUnitsExcluded:
        return "all excluded"
    return [
        (one.task_type, one.verdict, one.evidence, one.base_accuracy, one.cand_accuracy) for one in outcome.outcomes
    ]
