import math

import pytest

from services.gate.domain.errors import DuplicateLadderUnit, EmptyLadder, InvalidParameter, UnknownLadderUnit
from services.gate.domain.ladder import (
    Ladder,
    LadderCandidate,
    LadderParameters,
    LadderSeed,
    build_ladder,
    require_known,
)

SEED = LadderSeed("w", "Action", 0, 3)


def known(name: str, estimate: float) -> LadderCandidate:
    return LadderCandidate(name, (f"{name}-q",), estimate)


def cold(name: str, right: int, count: int) -> LadderCandidate:
    return LadderCandidate(name, (f"{name}-q",), None, right, count)


def order(ladder: Ladder) -> list[str]:
    return [rung.candidate.unit_id for rung in ladder.rungs]


def test_gat_9_uncertain_units_come_first_and_the_rest_in_the_same_manner() -> None:
    units = [
        known("sure", 1.0),
        known("edge", 0.95),
        known("skewed", 0.15),
        known("border", 0.1),
        known("fair", 0.5),
        known("lost", 0.0),
    ]
    ladder = build_ladder(units, (), SEED, LadderParameters())
    assert order(ladder)[:3] == ["fair", "skewed", "border"]
    assert set(order(ladder)[3:]) == {"sure", "lost", "edge"}
    assert [rung.bin for rung in ladder.rungs] == [0, 2, 3, 9, 9, 9]


def test_gat_9_within_a_bin_the_order_is_a_permutation_of_the_seed_and_not_of_the_input() -> None:
    units = [known(f"u{i}", 0.5) for i in range(40)]
    first = order(build_ladder(units, (), SEED, LadderParameters()))
    assert first == order(build_ladder(units[::-1], (), SEED, LadderParameters()))
    assert first != [unit.unit_id for unit in units]
    for other in (
        LadderSeed("v", "Action", 0, 3),
        LadderSeed("w", "Other", 0, 3),
        LadderSeed("w", "Action", 1, 3),
        LadderSeed("w", "Action", 0, 4),
    ):
        assert order(build_ladder(units, (), other, LadderParameters())) != first


def test_gat_9_nearby_estimates_share_a_bin_so_that_their_noise_orders_nothing() -> None:
    units = [known(f"u{i}", 0.45 + i / 400) for i in range(40)]
    assert {rung.bin for rung in build_ladder(units, (), SEED, LadderParameters()).rungs} == {0}


def test_gat_9_a_cold_start_uses_the_rule_of_succession() -> None:
    ladder = build_ladder([cold("a", 1, 1), cold("b", 0, 1), cold("c", 3, 4)], (), SEED, LadderParameters())
    estimates = {rung.candidate.unit_id: rung.estimate for rung in ladder.rungs}
    assert estimates == pytest.approx({"a": 2 / 3, "b": 1 / 3, "c": 4 / 6})


def test_gat_9_excluded_units_are_left_out_and_the_ladder_is_cut() -> None:
    units = [known(f"u{i}", 0.5) for i in range(10)]
    ladder = build_ladder(units, {"u1", "u2", "elsewhere"}, SEED, LadderParameters(n_max=5))
    assert (len(ladder.rungs), ladder.excluded_count, ladder.cut_count) == (5, 2, 3)
    assert not {"u1", "u2"} & set(order(ladder))


def test_gat_9_faulty_requests_are_named() -> None:
    with pytest.raises(DuplicateLadderUnit, match="'a' twice"):
        build_ladder([known("a", 0.5), known("a", 0.6)], (), SEED, LadderParameters())
    with pytest.raises(EmptyLadder):
        build_ladder([], (), SEED, LadderParameters())
    with pytest.raises(UnknownLadderUnit, match="b, c") as raised:
        require_known("Action", ["a", "b", "c"], {"a"})
    assert raised.value.metadata["count"] == "2"


@pytest.mark.parametrize("arguments", [(math.nan, 0, 0), (1.2, 0, 0), (None, 0, 0), (None, 2, 1), (None, -1, 1)])
def test_gat_9_estimates_out_of_range_are_refused(arguments: tuple[float | None, int, int]) -> None:
    with pytest.raises(InvalidParameter):
        LadderCandidate("a", ("q",), *arguments)


@pytest.mark.parametrize("arguments", [(0, 0.1, 0.9), (60, 0.9, 0.1), (60, math.nan, 0.9), (60, 0.1, 1.1)])
def test_gat_9_parameters_out_of_range_are_refused(arguments: tuple[int, float, float]) -> None:
    with pytest.raises(InvalidParameter):
        LadderParameters(*arguments)
