"""QUA-10 in small: calls under every fault of SIM-2, by the real service and simulated model; see bench/faults.py."""

import pytest

from bench.faults import FAULT_KINDS, Tally, with_disk_cache, with_redis

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CALLS = 400


def require_sound(tally: Tally) -> None:
    """Every promise was kept, and the calls were really made."""
    assert tally.broken == []
    assert tally.calls == CALLS
    assert tally.statuses["OK"] > CALLS * 0.8


async def test_qua_10_no_fault_is_ever_cached_or_returned_as_an_answer(tmp_path):
    tally = await with_disk_cache(tmp_path, CALLS)
    require_sound(tally)
    assert tally.cached_entries > CALLS // 2
    assert sum(map(bool, tally.faults.values())) > len(FAULT_KINDS) // 2
    assert sum(tally.faults.values()) > tally.attempts * 0.1


@pytest.mark.redis
async def test_qua_10_nor_while_redis_is_stopped_frozen_and_restarted(tmp_path):
    tallies = await with_redis(tmp_path, CALLS)
    for tally in tallies.values():
        require_sound(tally)
    assert [name for name, tally in tallies.items() if tally.cached_entries] == ["redis running", "redis restarted"]
