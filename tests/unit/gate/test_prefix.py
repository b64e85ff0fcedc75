import pytest

from services.gate.domain.errors import AllUnitsExcluded, DuplicateLadderUnit
from services.gate.domain.evidence import Mixture
from services.gate.domain.prefix import Prefix
from services.gate.domain.stability import Stability
from services.gate.domain.unit_result import Arm, ArmResult, ParseCount, QuestionResult, fold_unit
from services.gate.domain.verdict import Decision, GateParameters
from tests.builders.gate_builders import flips, unit


def ladder(length: int, parameters: GateParameters | None = None, max_share: float = 0.10) -> Prefix:
    units = [unit("t", number).unit_id for number in range(length)]
    return Prefix("t", units, parameters or GateParameters(), max_share)


def consume(prefix: Prefix, outcomes: str) -> Prefix:
    for (unit_id, arm), result in flips("t", outcomes).items():
        prefix.resolve(unit_id, Arm(arm), ArmResult(result))
    return prefix


def test_gat_4_an_unresolved_head_blocks_a_resolved_tail() -> None:
    prefix = ladder(10)
    for (unit_id, arm), result in flips("t", "NWWWWWWWWW").items():
        if (unit_id, arm) != ("t-0", "cand"):
            assert not prefix.resolve(unit_id, Arm(arm), ArmResult(result))
    assert (prefix.position, prefix.n_used, prefix.verdict.decision) == (0, 0, Decision.CONTINUE)


def test_gat_4_the_heads_arrival_consumes_the_longest_prefix_at_once() -> None:
    prefix = ladder(10)
    for (unit_id, arm), result in flips("t", "NWWLWWWWWW").items():
        if unit_id not in ("t-0", "t-6"):
            prefix.resolve(unit_id, Arm(arm), ArmResult(result))
    prefix.resolve("t-0", Arm.BASE, ArmResult.WRONG)
    rows = prefix.resolve("t-0", Arm.CAND, ArmResult.WRONG)
    assert [(row.rank, row.wins, row.losses) for row in rows] == [
        (0, 0, 0),
        (1, 1, 0),
        (2, 2, 0),
        (3, 2, 1),
        (4, 3, 1),
        (5, 4, 1),
    ]
    assert prefix.position == 6


@pytest.mark.parametrize(("mixture", "n_used", "e"), [(Mixture.UNIFORM, 8, 28.44), (Mixture.ONE_SIDED, 7, 31.88)])
def test_gat_2_twelve_straight_wins_freeze(mixture: Mixture, n_used: int, e: float) -> None:
    verdict = consume(ladder(12, GateParameters(mixture=mixture)), "W" * 12).verdict
    assert (verdict.decision, verdict.n_used, verdict.wins) == (Decision.ACCEPT_CONFIRMED, n_used, n_used)
    assert verdict.e == pytest.approx(e, abs=0.01)


def test_gat_6_a_faulty_first_unit_is_skipped_and_five_wins_are_provisional() -> None:
    prefix = consume(ladder(6), "FWWWWW")
    verdict = prefix.verdict
    assert (prefix.excluded, verdict.n_used, verdict.decision) == (1, 5, Decision.ACCEPT_PROVISIONAL)
    assert verdict.e == pytest.approx(5.333, abs=1e-3)


def test_gat_2_three_ties_are_futile_after_the_first() -> None:
    verdict = consume(ladder(3), "BNB").verdict
    assert (verdict.decision, verdict.n_used) == (Decision.REJECT_FUTILE, 1)


def test_gat_2_four_wins_of_four_are_provisional() -> None:
    verdict = consume(ladder(4), "WWWW").verdict
    assert verdict.decision is Decision.ACCEPT_PROVISIONAL
    assert verdict.e == pytest.approx(3.2)


def test_gat_4_two_types_do_not_touch_each_others_counters() -> None:
    first, second = ladder(12), ladder(12)
    for (unit_id, arm), result in flips("t", "W" * 7).items():
        first.resolve(unit_id, Arm(arm), ArmResult(result))
        opposite = {"right": ArmResult.WRONG, "wrong": ArmResult.RIGHT}[result]
        second.resolve(unit_id, Arm(arm), opposite)
    assert (first.verdict.wins, first.verdict.losses) == (7, 0)
    assert (second.verdict.wins, second.verdict.losses, second.verdict.decision) == (0, 2, Decision.REJECT_DIRECTION)


@pytest.mark.parametrize("outcomes", ["E", "EEE", "FFEE", "EP", "FP"])
def test_gat_6_a_ladder_of_nothing_but_faults_has_no_verdict(outcomes: str) -> None:
    prefix = consume(ladder(len(outcomes)), outcomes)
    with pytest.raises(AllUnitsExcluded, match="check the inference infrastructure"):
        _ = prefix.verdict


def test_gat_6_a_candidate_unparsable_throughout_is_unstable() -> None:
    verdict = consume(ladder(5), "PPPPP").verdict
    assert (verdict.decision, verdict.n_used) == (Decision.REJECT_UNSTABLE, 0)
    assert verdict.stability == Stability(pessimistic_losses=5, cand=ParseCount(5, 5))
    assert verdict.reason.endswith("5 of the candidate's 5 questions were unparsable (100.0%), more than 10.0%")


def test_gat_6_a_fault_at_the_end_still_ends_the_ladder() -> None:
    assert consume(ladder(6), "WWWWWE").verdict.decision is Decision.ACCEPT_PROVISIONAL
    assert consume(ladder(6), "WNBNBE").verdict.decision is Decision.REJECT_FUTILE


def test_gat_8_nothing_is_counted_after_a_terminal_verdict() -> None:
    prefix = consume(ladder(12), "W" * 8)
    frozen = (prefix.verdict, prefix.rows)
    assert prefix.frozen
    for rank in range(8, 12):
        for arm in Arm:
            assert not prefix.resolve(f"t-{rank}", arm, ArmResult.WRONG)
    assert (prefix.verdict, prefix.rows) == frozen
    assert prefix.result(11, Arm.CAND) is ArmResult.WRONG, "kept as observed"


def test_gat_6_an_accept_must_survive_the_pessimistic_reading() -> None:
    """E(5, 0) = 5.3 clears e_provisional, E(5, 2) = 0.76 does not; 2 of 20 questions are within the limit."""
    verdict = consume(ladder(20), "B" * 13 + "PPWWWWW").verdict
    assert (verdict.decision, verdict.n_used) == (Decision.REJECT_UNSTABLE, 18)
    assert verdict.stability == Stability(pessimistic_losses=2, cand=ParseCount(2, 20))
    assert verdict.reason == (
        "W=5 L=0 after 18 units, E=5.333: the accept does not survive counting as losses the 2 units "
        "where only the candidate was unparsable"
    )


def test_gat_6_no_accept_stands_on_more_parse_errors_than_the_guards_limit() -> None:
    """Units that the base had wrong are no hidden losses: only the share of parse errors speaks."""
    prefix = ladder(12)
    for rank in range(10):
        prefix.resolve(f"t-{rank}", Arm.BASE, ArmResult.WRONG)
        prefix.resolve(f"t-{rank}", Arm.CAND, ArmResult.UNPARSABLE if rank in (2, 5) else ArmResult.RIGHT)
    verdict = prefix.verdict
    assert (verdict.decision, verdict.n_used, verdict.wins) == (Decision.REJECT_UNSTABLE, 8, 8)
    assert verdict.stability == Stability(pessimistic_losses=0, cand=ParseCount(2, 10))
    assert verdict.reason == (
        "W=8 L=0 after 8 units, E=28.44: 2 of the candidate's 10 questions were unparsable (20.0%), more than 10.0%"
    )


@pytest.mark.parametrize(("outcomes", "accepted"), [("PWWWWWWWW", False), ("PBWWWWWWWW", True), ("PBBWWWWWWWW", True)])
def test_gat_6_fewer_than_ten_questions_must_all_be_parsable(outcomes: str, accepted: bool) -> None:
    """One of nine is above the limit, one of ten is not; E(8, 1) = 5.7 clears e_provisional."""
    verdict = consume(ladder(20), outcomes + "B" * (20 - len(outcomes))).verdict
    assert verdict.decision is (Decision.ACCEPT_CONFIRMED if accepted else Decision.REJECT_UNSTABLE)
    assert verdict.stability.pessimistic_losses == 1


def test_gat_6_a_share_of_exactly_the_limit_is_within_it() -> None:
    for questions in range(1, 1001):
        assert not Stability(cand=ParseCount(questions // 10, questions)).garbled
        assert Stability(cand=ParseCount(questions // 10 + 1, questions)).garbled


def test_gat_6_the_limit_is_that_of_the_round() -> None:
    assert consume(ladder(20, max_share=0.2), "PWWWWWWWW" + "B" * 11).verdict.decision is Decision.ACCEPT_CONFIRMED
    strict = consume(ladder(20, max_share=0.05), "PBWWWWWWWW" + "B" * 10).verdict
    assert (strict.decision, strict.stability.max_share) == (Decision.REJECT_UNSTABLE, 0.05)


@pytest.mark.parametrize(("unparsable", "accepted"), [(1, True), (2, False)])
def test_gat_6_parse_errors_are_counted_by_question_not_by_unit(unparsable: int, accepted: bool) -> None:
    """Nine units of two questions: one parse error of 18 is within the limit, though one unit of nine is missing."""
    prefix = ladder(20)
    for rank in range(9):
        spoiled = rank == 0
        prefix.resolve(f"t-{rank}", Arm.BASE, ArmResult.WRONG)
        result = ArmResult.UNPARSABLE if spoiled else ArmResult.RIGHT
        prefix.resolve(f"t-{rank}", Arm.CAND, result, ParseCount(unparsable if spoiled else 0, 2))
    assert prefix.verdict.decision is (Decision.ACCEPT_CONFIRMED if accepted else Decision.REJECT_UNSTABLE)
    assert prefix.verdict.stability.cand == ParseCount(unparsable, 18)


def test_gat_6_parse_errors_behind_the_prefix_are_not_counted() -> None:
    prefix = ladder(20)
    for rank in range(12, 20):
        prefix.resolve(f"t-{rank}", Arm.CAND, ArmResult.UNPARSABLE)
    verdict = consume(prefix, "W" * 8).verdict
    assert (verdict.decision, verdict.stability.cand) == (Decision.ACCEPT_CONFIRMED, ParseCount(0, 8))


def test_gat_6_errors_and_units_that_the_base_had_wrong_are_no_hidden_losses() -> None:
    prefix = ladder(12, max_share=0.2)
    for rank in range(4):
        prefix.resolve(f"t-{rank}", Arm.BASE, ArmResult.WRONG if rank % 2 else ArmResult.RIGHT)
        prefix.resolve(f"t-{rank}", Arm.CAND, ArmResult.UNPARSABLE if rank % 2 else ArmResult.ERROR)
    for rank in range(4, 12):
        prefix.resolve(f"t-{rank}", Arm.BASE, ArmResult.WRONG)
        prefix.resolve(f"t-{rank}", Arm.CAND, ArmResult.RIGHT)
    verdict = prefix.verdict
    assert (verdict.decision, verdict.stability.pessimistic_losses) == (Decision.ACCEPT_CONFIRMED, 0)


def test_gat_4_an_arm_is_resolved_once() -> None:
    prefix = ladder(4)
    prefix.resolve("t-2", Arm.BASE, ArmResult.RIGHT)
    prefix.resolve("t-2", Arm.BASE, ArmResult.RIGHT)
    with pytest.raises(ValueError, match="already right, now wrong"):
        prefix.resolve("t-2", Arm.BASE, ArmResult.WRONG)


def test_gat_11_a_unit_named_twice_is_refused() -> None:
    with pytest.raises(DuplicateLadderUnit, match="'b' twice"):
        Prefix("t", ["a", "b", "c", "b"], GateParameters())


def folded(*answers: tuple[bool, str]) -> ArmResult:
    return fold_unit(QuestionResult(str(i), correct, stop) for i, (correct, stop) in enumerate(answers))


def test_gat_3_a_unit_is_right_only_if_all_its_questions_are() -> None:
    assert folded((True, "finished"), (True, "finished")) is ArmResult.RIGHT
    assert folded((True, "finished"), (False, "finished")) is ArmResult.WRONG
    assert folded((True, "finished"), (False, "budget_exceeded")) is ArmResult.WRONG


def test_gat_6_any_fault_makes_the_unit_missing_and_an_unparsable_answer_is_remembered() -> None:
    assert folded((False, "finished"), (False, "error")) is ArmResult.ERROR
    assert folded((False, "error"), (False, "parse_error"), (True, "finished")) is ArmResult.UNPARSABLE
