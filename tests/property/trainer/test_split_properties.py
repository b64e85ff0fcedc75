"""Properties every split has, whatever the question set (TRN-4)."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.trainer.domain.errors import InfeasibleSplit
from services.trainer.domain.split import SplitCase, SplitParameters, split_pools

TYPES = ("Causal Why", "Temporal Next", "Descriptive Count")


@st.composite
def question_sets(draw: st.DrawFn) -> list[SplitCase]:
    cases: list[SplitCase] = []
    for video in range(draw(st.integers(3, 14))):
        for number in range(draw(st.integers(1, 5))):
            correct = draw(st.booleans())
            tier = None if correct else draw(st.sampled_from(["T1", "T2", "uncertain"]))
            question = f"v{video:02}-{number}"
            cases.append(SplitCase(question, f"v{video:02}", draw(st.sampled_from(TYPES)), question, correct, tier))
    return cases


@given(question_sets(), st.floats(0.1, 0.9), st.integers(0, 6), st.integers(0, 5), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_trn_4_split_invariants(
    cases: list[SplitCase], val_ratio: float, wrong_min: int, seed: int, rng: random.Random
) -> None:
    parameters = SplitParameters(len(cases) // 4, val_ratio, wrong_min, seed)
    without_repair = split_pools(cases, SplitParameters(len(cases) // 4, val_ratio, 0, seed))
    wrong = without_repair.counts["diag"].wrong + without_repair.counts["val"].wrong
    if wrong < wrong_min:
        with pytest.raises(InfeasibleSplit) as refusal:
            split_pools(cases, parameters)
        assert refusal.value.val_wrong == refusal.value.trainval_wrong == wrong
        return
    split = split_pools(cases, parameters)
    assigned = [question for pool in split.pools.values() for question in pool]
    assert sorted(assigned) == sorted(case.question_id for case in cases)
    videos = {case.question_id: case.video_id for case in cases}
    pool_videos = [{videos[question] for question in pool} for pool in split.pools.values()]
    assert sum(len(each) for each in pool_videos) == len(set(videos.values())), "a video straddles pools"
    assert len(split.pools["test"]) <= parameters.test_size
    assert split.counts["val"].wrong >= wrong_min
    shuffled = list(cases)
    rng.shuffle(shuffled)
    assert split_pools(shuffled, parameters) == split, "the split depends on the order of its input"
