"""The split of a question set into diag, val and test (TRN-4). Pure, seeded, deterministic.

Whole video groups are assigned, so that no video straddles two pools. A group is a video, or several that
share a unit. Test is drawn first, stratified by task type and blind to right and wrong; diag and val are
then told apart tier-aware, so that diag holds what can be learned from and val enough wrong answers to select with.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from services.trainer.domain.errors import InfeasibleSplit, TrainerError

PoolName = Literal["diag", "val", "test"]
POOL_NAMES: tuple[PoolName, ...] = ("diag", "val", "test")
DEFECT_TIER = "T2"


@dataclass(frozen=True, slots=True)
class SplitCase:
    """One question as the split sees it; `tier` is that of its diagnosis, None for a right answer."""

    question_id: str
    video_id: str
    task_type: str
    unit_id: str
    correct: bool
    tier: str | None = None


@dataclass(frozen=True, slots=True)
class SplitParameters:
    """`test_size` in questions; `val_ratio` is val's share of the questions outside test, in (0, 1)."""

    test_size: int
    val_ratio: float = 0.4
    val_wrong_min: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        if self.test_size < 0:
            raise TrainerError(f"test_size is {self.test_size}, but must be 0 or more questions")
        if not 0.0 < self.val_ratio < 1.0:
            raise TrainerError(f"val_ratio is {self.val_ratio}, but must lie between 0 and 1")
        if self.val_wrong_min < 0:
            raise TrainerError(f"val_wrong_min is {self.val_wrong_min}, but must be 0 or more")


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """What one pool holds, in questions (units and videos where said)."""

    questions: int
    units: int
    videos: int
    wrong: int
    t2: int
    by_type: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Split:
    """The pools as sorted question ids, what they hold, and the content fingerprint of the whole."""

    parameters: SplitParameters
    pools: Mapping[PoolName, tuple[str, ...]]
    counts: Mapping[PoolName, PoolCounts]
    t2_captured: float | None
    repaired_groups: int
    sha256: str


@dataclass(frozen=True, slots=True)
class _Group:
    key: str
    cases: tuple[SplitCase, ...]

    @property
    def wrong(self) -> int:
        return sum(not case.correct for case in self.cases)

    @property
    def t2(self) -> int:
        return sum(case.tier == DEFECT_TIER for case in self.cases)

    @property
    def size(self) -> int:
        return len(self.cases)


def split_pools(cases: Sequence[SplitCase], parameters: SplitParameters) -> Split:
    """Assigns every case to diag, val or test.

    Raises InfeasibleSplit when val cannot get `val_wrong_min` wrong answers, TrainerError when test would
    leave nothing to train on or a question id occurs twice.
    """
    duplicates = [question for question, count in Counter(case.question_id for case in cases).items() if count > 1]
    if duplicates:
        raise TrainerError(f"question {duplicates[0]} occurs more than once in the baseline; a split needs each once")
    if parameters.test_size >= len(cases):
        raise TrainerError(f"test_size is {parameters.test_size}, but there are only {len(cases)} answered questions")
    groups = _group_by_video(cases)
    test, trainval = _draw_test(groups, parameters)
    diag, val = _fill_diag(trainval, parameters.val_ratio)
    diag, val, moved = _repair_val(diag, val, parameters.val_wrong_min)
    return _seal({"diag": diag, "val": val, "test": test}, parameters, moved)


def _group_by_video(cases: Sequence[SplitCase]) -> list[_Group]:
    """Connected components of videos that share a unit, keyed by their smallest video id."""
    parent = {case.video_id: case.video_id for case in cases}

    def root(video: str) -> str:
        while parent[video] != video:
            parent[video] = parent[parent[video]]
            video = parent[video]
        return video

    first_video_of_unit: dict[str, str] = {}
    for case in cases:
        one, other = root(first_video_of_unit.setdefault(case.unit_id, case.video_id)), root(case.video_id)
        parent[max(one, other)] = min(one, other)
    members: dict[str, list[SplitCase]] = defaultdict(list)
    for case in cases:
        members[root(case.video_id)].append(case)
    return [_Group(key, tuple(sorted(members[key], key=lambda case: case.question_id))) for key in sorted(members)]


def _draw_test(groups: Sequence[_Group], parameters: SplitParameters) -> tuple[list[_Group], list[_Group]]:
    """Draws whole groups by iterative stratification (Sechidis et al. 2011): serve the neediest type first.

    The draw order is a seeded permutation of the groups; right and wrong play no part. Never exceeds
    `test_size`, and falls short only by less than the smallest group left.
    """
    totals = Counter(case.task_type for group in groups for case in group.cases)
    share = parameters.test_size / max(1, sum(totals.values()))
    need = {task_type: count * share for task_type, count in totals.items()}
    waiting = sorted(groups, key=lambda group: _draw_key(parameters.seed, group.key))
    types_of = {group.key: Counter(case.task_type for case in group.cases) for group in groups}
    drawn: list[_Group] = []
    room = parameters.test_size
    while fitting := [group for group in waiting if group.size <= room]:
        served = {task_type for group in fitting for task_type in types_of[group.key]}
        neediest = max(sorted(served), key=lambda task_type: need[task_type] / totals[task_type])
        chosen = next(group for group in fitting if types_of[group.key][neediest])
        drawn.append(chosen)
        waiting.remove(chosen)
        room -= chosen.size
        for task_type, count in types_of[chosen.key].items():
            need[task_type] -= count
    return drawn, waiting


def _draw_key(seed: int, group_key: str) -> str:
    return hashlib.sha256(f"test:{seed}:{group_key}".encode()).hexdigest()


def _fill_diag(trainval: Sequence[_Group], val_ratio: float) -> tuple[list[_Group], list[_Group]]:
    ordered = sorted(trainval, key=lambda group: (-group.t2, -group.wrong, group.key))
    target = (1.0 - val_ratio) * sum(group.size for group in ordered)
    diag: list[_Group] = []
    filled = 0
    for group in ordered:
        if filled >= target:
            break
        diag.append(group)
        filled += group.size
    return diag, ordered[len(diag) :]


def _repair_val(
    diag: Sequence[_Group], val: Sequence[_Group], wrong_min: int
) -> tuple[list[_Group], list[_Group], int]:
    """Moves groups with wrong answers, fewest defects first, from diag to val until val has enough to select with."""
    kept, grown = list(diag), list(val)
    movable = sorted((group for group in diag if group.wrong), key=lambda group: (group.t2, group.key))
    moved = 0
    while (val_wrong := sum(group.wrong for group in grown)) < wrong_min:
        if moved == len(movable):
            trainval_wrong = sum(group.wrong for group in [*kept, *grown])
            raise InfeasibleSplit(val_wrong, wrong_min, trainval_wrong, moved)
        kept.remove(movable[moved])
        grown.append(movable[moved])
        moved += 1
    return kept, grown, moved


def _seal(pools: Mapping[PoolName, Sequence[_Group]], parameters: SplitParameters, moved: int) -> Split:
    counts = {name: _count(pools[name]) for name in POOL_NAMES}
    ids = {
        name: tuple(sorted(case.question_id for group in pools[name] for case in group.cases)) for name in POOL_NAMES
    }
    t2_total = counts["diag"].t2 + counts["val"].t2
    content = json.dumps({"pools": ids}, sort_keys=True, separators=(",", ":"))
    return Split(
        parameters=parameters,
        pools=ids,
        counts=counts,
        t2_captured=counts["diag"].t2 / t2_total if t2_total else None,
        repaired_groups=moved,
        sha256=hashlib.sha256(content.encode()).hexdigest(),
    )


def _count(groups: Sequence[_Group]) -> PoolCounts:
    cases = [case for group in groups for case in group.cases]
    return PoolCounts(
        questions=len(cases),
        units=len({case.unit_id for case in cases}),
        videos=len({case.video_id for case in cases}),
        wrong=sum(group.wrong for group in groups),
        t2=sum(group.t2 for group in groups),
        by_type=dict(sorted(Counter(case.task_type for case in cases).items())),
    )
