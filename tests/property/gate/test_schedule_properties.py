"""Slots: never wider than allowed, never stuck, never unfair (GAT-7)."""

import asyncio
import random
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from services.gate.domain.unit_result import Arm
from services.gate.use_cases.launch_queue import Launch, LaunchQueue
from services.gate.use_cases.schedule import Scheduler

SIZES = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=12), min_size=1, max_size=5)


class Watch:
    """Runs arms for a random number of turns of the loop and looks at what runs together."""

    def __init__(self, width: int, rng: random.Random) -> None:
        self.width = width
        self.rng = rng
        self.order: list[Launch] = []
        self.done: list[Launch] = []
        self.running: list[Launch] = []

    def launched(self, launch: Launch) -> None:
        self.order.append(launch)
        self.running.append(launch)
        assert sum(min(one.slots, self.width) for one in self.running) <= self.width
        if launch.slots > self.width:
            assert self.running == [launch], "a unit larger than the width runs alone"

    async def answer(self, launch: Launch) -> int:
        for _ in range(self.rng.randrange(10)):
            await asyncio.sleep(0)
        self.running.remove(launch)
        return launch.rank

    def settle(self, launch: Launch, rank: int) -> None:
        assert rank == launch.rank
        self.done.append(launch)


def run(sizes: list[list[int]], width: int, rng: random.Random) -> tuple[Watch, Scheduler]:
    watch = Watch(width, rng)
    scheduler = Scheduler(LaunchQueue(sizes, lambda lane, rank, arm: True), width)

    async def go() -> None:
        async with asyncio.timeout(20):
            await scheduler.run(watch.launched, watch.answer, watch.settle)

    asyncio.run(go())
    return watch, scheduler


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 6), st.randoms(use_true_random=False))
def test_gat_7_every_arm_runs_once_in_fair_order_within_the_width(
    sizes: list[list[int]], width: int, rng: random.Random
) -> None:
    watch, scheduler = run(sizes, width, rng)
    expected = [
        Launch(lane, rank, arm, sizes[lane][rank])
        for rank in range(max(map(len, sizes)))
        for lane in range(len(sizes))
        if rank < len(sizes[lane])
        for arm in Arm
    ]
    assert watch.order == expected
    assert sorted(watch.done, key=expected.index) == expected
    assert 1 <= scheduler.peak_in_flight <= width


def test_gat_7_units_of_one_two_and_three_questions_under_a_width_of_two_neither_deadlock_nor_starve() -> None:
    sizes = [[1, 2, 3] * 20, [3, 1, 2] * 20]
    watch, scheduler = run(sizes, 2, random.Random(4))
    assert len(watch.done) == 240
    assert scheduler.peak_in_flight == 2


@settings(max_examples=25, deadline=None)
@given(SIZES, st.integers(0, 3), st.data())
def test_gat_8_the_queue_holds_back_beyond_the_bound_and_drops_what_is_frozen(
    sizes: list[list[int]], speculation: int, data: st.DataObject
) -> None:
    queue = LaunchQueue(sizes, lambda lane, rank, arm: True, speculation)
    position, frozen, seen = [0] * len(sizes), set[int](), set[Launch]()
    for _ in range(80):
        lane = data.draw(st.integers(0, len(sizes) - 1))
        if data.draw(st.integers(0, 9)) == 0:
            frozen.add(lane)
            queue.freeze(lane)
        elif (
            position[lane] < len(sizes[lane])
            and Launch(lane, position[lane], Arm.CAND, sizes[lane][position[lane]]) in seen
        ):
            position[lane] += 1
            queue.advance(lane, position[lane])
        launch = queue.pop()
        if launch is not None:
            assert launch not in seen
            assert launch.lane not in frozen
            assert launch.rank <= position[launch.lane] + speculation
            seen.add(launch)


def test_gat_7_pending_work_costs_no_memory() -> None:
    sizes = [[1] * 50_000]
    tracemalloc.start()
    queue = LaunchQueue(sizes, lambda lane, rank, arm: True)
    while queue.pop() is not None:
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000, "a cursor a type, whatever is pending"
