import pytest

from services.trainer.domain.errors import InfeasibleSplit, TrainerError
from services.trainer.domain.split import SplitCase, SplitParameters, split_pools


def cases_of_video(
    video: str, wrong: int, right: int, t2: int = 0, task_type: str = "Action Reasoning"
) -> list[SplitCase]:
    """A video with `wrong` wrong questions, the first `t2` of them defects, and `right` right ones."""
    made = []
    for index in range(wrong + right):
        tier = None if index >= wrong else ("T2" if index < t2 else "T1")
        question = f"{video}-{index}"
        made.append(SplitCase(question, video, task_type, question, correct=index >= wrong, tier=tier))
    return made


def test_trn_4_diag_takes_the_videos_with_the_most_defects_first() -> None:
    cases = [*cases_of_video("a", 1, 3), *cases_of_video("b", 3, 1, t2=2), *cases_of_video("c", 2, 2, t2=1)]
    split = split_pools(cases, SplitParameters(test_size=0, val_ratio=0.4, val_wrong_min=1))
    assert {question[0] for question in split.pools["diag"]} == {"b", "c"}
    assert {question[0] for question in split.pools["val"]} == {"a"}
    assert split.t2_captured == 1.0


def test_trn_4_ties_are_broken_by_wrong_count_then_video_id() -> None:
    cases = [*cases_of_video("z", 2, 2), *cases_of_video("y", 1, 3), *cases_of_video("x", 1, 3)]
    split = split_pools(cases, SplitParameters(test_size=0, val_ratio=0.6, val_wrong_min=0))
    assert {question[0] for question in split.pools["diag"]} == {"z", "x"}


def test_trn_4_repair_moves_the_group_with_wrong_answers_and_the_fewest_defects() -> None:
    cases = [
        *cases_of_video("a", 3, 1, t2=3),
        *cases_of_video("b", 3, 1, t2=1),
        *cases_of_video("c", 2, 2, t2=2),
        *cases_of_video("d", 0, 4),
    ]
    split = split_pools(cases, SplitParameters(test_size=0, val_ratio=0.25, val_wrong_min=2))
    assert {question[0] for question in split.pools["val"]} == {"b", "d"}
    assert split.repaired_groups == 1
    assert split.counts["val"].wrong == 3


def test_trn_4_infeasible_split_names_the_figures() -> None:
    cases = [*cases_of_video("a", 2, 2, t2=1), *cases_of_video("b", 1, 3), *cases_of_video("c", 0, 4)]
    with pytest.raises(InfeasibleSplit) as caught:
        split_pools(cases, SplitParameters(test_size=0, val_wrong_min=4))
    assert (caught.value.val_wrong, caught.value.wanted, caught.value.trainval_wrong) == (3, 4, 3)
    assert "val_wrong_min" in str(caught.value)


def test_trn_4_test_is_blind_to_right_and_wrong() -> None:
    rights = [case for video in "abcdefgh" for case in cases_of_video(video, 0, 3)]
    wrongs = [case for video in "abcdefgh" for case in cases_of_video(video, 3, 0, t2=3)]
    parameters = SplitParameters(test_size=9, val_wrong_min=0, seed=3)
    assert split_pools(rights, parameters).pools["test"] == split_pools(wrongs, parameters).pools["test"]


def test_trn_4_test_is_stratified_by_type() -> None:
    cases = [
        case
        for kind in ("Causal Why", "Causal How", "Temporal Next")
        for video in range(12)
        for case in cases_of_video(f"{kind}-{video}", 1, 2, task_type=kind)
    ]
    split = split_pools(cases, SplitParameters(test_size=36, val_wrong_min=0))
    assert dict(split.counts["test"].by_type) == {"Causal How": 12, "Causal Why": 12, "Temporal Next": 12}


def test_trn_4_another_seed_draws_another_test() -> None:
    cases = [case for video in range(20) for case in cases_of_video(f"v{video:02}", 1, 2)]
    drawn = {split_pools(cases, SplitParameters(15, val_wrong_min=0, seed=seed)).pools["test"] for seed in range(4)}
    assert len(drawn) > 1


def test_trn_4_videos_that_share_a_unit_stay_together() -> None:
    shared = [
        SplitCase("q1", "left", "Causal Why", "u", True),
        SplitCase("q2", "right", "Causal Why", "u", False, "T2"),
    ]
    cases = [*shared, *cases_of_video("other", 2, 2), *cases_of_video("more", 2, 2)]
    for seed in range(5):
        split = split_pools(cases, SplitParameters(test_size=4, val_wrong_min=0, seed=seed))
        assert sum({"q1", "q2"} <= set(pool) for pool in split.pools.values()) == 1


def test_trn_4_a_question_answered_twice_is_an_error() -> None:
    cases = cases_of_video("a", 1, 3)
    with pytest.raises(TrainerError, match="a-0 occurs more than once"):
        split_pools([*cases, cases[0]], SplitParameters(test_size=0))


def test_trn_4_a_test_that_leaves_nothing_is_an_error() -> None:
    with pytest.raises(TrainerError, match="test_size is 4"):
        split_pools(cases_of_video("a", 1, 3), SplitParameters(test_size=4))


@pytest.mark.parametrize(("field", "value"), [("val_ratio", 0.0), ("val_ratio", 1.0), ("val_wrong_min", -1)])
def test_trn_4_parameters_are_checked(field: str, value: float) -> None:
    with pytest.raises(TrainerError, match=field):
        SplitParameters(test_size=1, **{field: value})  # type: ignore[arg-type]
