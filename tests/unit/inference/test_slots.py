"""INF-9: the queue for slots, through every way of leaving it."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from services.inference.use_cases.slots import SlotQueue


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_inf_9_those_who_wait_are_served_in_the_order_of_their_coming():
    slots, order = SlotQueue(2), []

    async def hold(name):
        await slots.acquire()
        order.append(name)
        await asyncio.sleep(0)
        slots.release()

    await asyncio.gather(*(hold(n) for n in range(20)))
    assert order == list(range(20))
    assert (slots.in_flight, slots.waiting) == (0, 0)


async def test_inf_9_a_slot_handed_to_a_caller_who_is_cancelled_at_that_moment_goes_on():
    slots = SlotQueue(1)
    await slots.acquire()
    first, second = asyncio.create_task(slots.acquire()), asyncio.create_task(slots.acquire())
    await settle()
    slots.release()
    first.cancel()
    await settle()
    assert first.cancelled()
    assert second.done()
    slots.release()
    assert (slots.in_flight, slots.waiting) == (0, 0)


async def test_inf_9_a_cancelled_wait_is_passed_over():
    slots = SlotQueue(1)
    await slots.acquire()
    first, second = asyncio.create_task(slots.acquire()), asyncio.create_task(slots.acquire())
    await settle()
    first.cancel()
    slots.release()
    await settle()
    assert (second.done(), slots.in_flight, slots.waiting) == (True, 1, 0)


async def test_inf_8_dismissal_raises_in_all_who_wait_and_holds_nothing():
    slots = SlotQueue(1)
    await slots.acquire()
    waiting = [asyncio.create_task(slots.acquire()) for _ in range(3)]
    await settle()
    slots.dismiss(lambda: ValueError("gone"))
    waiting[0].cancel()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(r) for r in results[1:]} == {ValueError}
    assert (slots.in_flight, slots.waiting) == (1, 0)
    slots.release()
    assert slots.in_flight == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.lists(st.tuples(st.sampled_from("arcds"), st.integers(0, 9)), max_size=40))
def test_inf_9_no_order_of_events_loses_or_doubles_a_slot(limit, events):
    async def play():
        slots, waiting, held = SlotQueue(limit), [], 0
        for kind, number in events:
            if kind == "a":
                waiting.append(asyncio.create_task(slots.acquire()))
            elif kind == "r" and held:
                held -= 1
                slots.release()
            elif kind == "c" and waiting:
                waiting[number % len(waiting)].cancel()
            elif kind == "d":
                slots.dismiss(lambda: ValueError("gone"))
            else:
                await settle()
                done = [task for task in waiting if task.done()]
                waiting = [task for task in waiting if not task.done()]
                held += sum(not task.cancelled() and task.exception() is None for task in done)
                assert held == slots.in_flight <= limit
                assert slots.waiting == len(waiting)
        for task in waiting:
            task.cancel()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        for _ in range(held + sum(result is None for result in results)):
            slots.release()
        assert (slots.in_flight, slots.waiting) == (0, 0)

    asyncio.run(play())
