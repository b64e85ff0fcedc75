"""INF-5: one contract for both caches, and calls while Redis is absent, stopped, frozen and back."""

import asyncio
import os
import statistics
import time

import diskcache
import pytest

from services.inference import main
from services.inference.adapters.disk_cache import DiskCache
from services.inference.adapters.redis_cache import RedisCache
from services.inference.config import InferenceConfig
from services.inference.domain.cache_key import salt_key_prefix
from services.inference.domain.chat import CacheStatus
from services.inference.use_cases.ports import CacheFault
from services.runtime.config import ConfigError, load_section
from services.runtime.testing import free_port
from tests.builders.inference_parts import endpoint, governed, request
from tests.fakes.fake_upstream import fake_upstream
from tests.fakes.redis_process import RedisProcess

needs_redis = [pytest.mark.redis]


@pytest.fixture
def redis(tmp_path):
    process = RedisProcess(str(tmp_path))
    yield process
    process.stop()


@pytest.fixture(params=["disk", pytest.param("redis", marks=needs_redis)])
async def cache(request, tmp_path, redis):
    if request.param == "redis":
        redis.start()
        kept = RedisCache(redis.url)
    else:
        kept = DiskCache(tmp_path / "cache", 2**26)
    yield kept
    await kept.close()


async def test_inf_5_a_cache_returns_the_bytes_it_was_given_until_their_end(cache):
    value = bytes(range(256)) * 500
    assert await cache.get("llm_cache:none:a") is None
    await cache.set("llm_cache:none:a", value, 100)
    await cache.set("llm_cache:none:short", b"x", 1)
    assert await cache.get("llm_cache:none:a") == value
    await cache.set("llm_cache:none:a", b"new", 100)
    assert await cache.get("llm_cache:none:a") == b"new"
    await asyncio.sleep(1.1)
    assert await cache.get("llm_cache:none:short") is None


async def test_inf_5_extend_renews_what_has_less_left_and_nothing_else(cache):
    for n in range(450):
        await cache.set(f"llm_cache:none:{n}", b"x", 3)
    await cache.set("llm_cache:none:long", b"y", 10_000)
    assert await cache.extend(1000) == (450, 451)
    await asyncio.sleep(3.1)
    assert await cache.get("llm_cache:none:3") == b"x"
    assert await cache.extend(500) == (0, 451)


async def test_inf_5_purge_removes_one_salt_and_leaves_the_others(cache):
    for salt in ("run:e0", "run:e1", None):
        for n in range(3):
            await cache.set(f"{salt_key_prefix(salt)}{n}", b"x", 100)
    assert (await cache.size()).entry_count == 9
    assert await cache.purge(salt_key_prefix("run:e0")) == 3
    assert await cache.purge(salt_key_prefix("run:e0")) == 0
    assert await cache.get(f"{salt_key_prefix('run:e1')}1") == b"x"
    assert await cache.purge(salt_key_prefix(None)) == 3
    assert (await cache.size()).entry_count == 3


async def test_inf_5_the_disk_cache_survives_a_restart_and_stays_inside_its_bound(tmp_path):
    bound = 4 * 2**20
    kept = DiskCache(tmp_path / "c", bound)
    await kept.set("llm_cache:none:first", b"x", 1000)
    await kept.close()
    kept = DiskCache(tmp_path / "c", bound)
    assert await kept.get("llm_cache:none:first") == b"x"
    for n in range(300):
        await kept.set(f"llm_cache:none:{n}", os.urandom(50_000), 1000)
    size = await kept.size()
    assert size.size_bytes < bound * 1.2
    assert await kept.get("llm_cache:none:299") is not None
    assert await kept.get("llm_cache:none:first") is None
    await kept.close()


async def test_inf_5_the_disk_cache_never_unpickles(tmp_path):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "pwned"),))

    with diskcache.Cache(str(tmp_path / "c")) as planted:
        planted.set("llm_cache:none:evil", Evil())
        planted.set(("a", "tuple"), b"x")
    kept = DiskCache(tmp_path / "c", 2**26)
    with pytest.raises(CacheFault):
        await kept.get("llm_cache:none:evil")
    with pytest.raises(CacheFault):
        await kept.extend(10)
    await kept.close()
    assert not (tmp_path / "pwned").exists()


async def test_inf_5_a_disk_cache_with_a_spoilt_entry_answers_from_upstream(tmp_path):
    async with fake_upstream() as up, governed(tmp_path, endpoint(up.base_url)) as model:
        await model.chat(request())
        cache = model.parts.operations._cache._cache
        (key,) = await cache._keys("llm_cache:")
        for spoilt in (b"", b"{", b"{}", b'{"value": {"content": 1}, "endpoint": "x"}', b"\xff", b"[]", b"null"):
            await cache.set(key, spoilt, 100)
            assert (await model.chat(request())).cache_status is CacheStatus.MISS


class Stalls:
    """Adds up how late the event loop is, in milliseconds: the machine's doing, and nobody's wait."""

    TICK_SECONDS = 0.002
    USUAL_MILLISECONDS = 3.0

    def __init__(self) -> None:
        self.milliseconds = 0.0

    async def watch(self) -> None:
        """Until it is cancelled."""
        while True:
            began = time.perf_counter()
            await asyncio.sleep(self.TICK_SECONDS)
            late = (time.perf_counter() - began - self.TICK_SECONDS) * 1000
            self.milliseconds += late if late > self.USUAL_MILLISECONDS else 0.0


async def added_milliseconds(model, up, count, start):
    """The median and the largest time of calls whose upstream answers at once, less what the machine stalled them."""
    stalls, times = Stalls(), []
    watching = asyncio.create_task(stalls.watch())
    for n in range(count):
        began, stalled = time.perf_counter(), stalls.milliseconds
        answer = await model.chat(request(f"{start} {n}"))
        took = (time.perf_counter() - began) * 1000
        assert answer.content == "Hello"
        await asyncio.sleep(0.02)  # a stall at the call's end is counted when the watch wakes
        times.append(took - (stalls.milliseconds - stalled))
    watching.cancel()
    return statistics.median(times), max(times)


@pytest.mark.redis
async def test_inf_5_redis_absent_stopped_frozen_and_back_never_spoils_or_delays_a_call(tmp_path, redis):
    async with (
        fake_upstream() as up,
        governed(tmp_path, endpoint(up.base_url), redis_url=redis.url) as model,
    ):
        usual = (await added_milliseconds(model, up, 20, "absent"))[0]
        assert (await added_milliseconds(model, up, 40, "still absent"))[1] < usual + 50
        redis.start()
        await asyncio.sleep(1.2)
        assert (await model.chat(request("there"))).cache_status is CacheStatus.MISS
        assert (await model.chat(request("there"))).cache_status is CacheStatus.HIT
        redis.freeze()
        assert (await added_milliseconds(model, up, 60, "frozen"))[1] < usual + 50
        assert (await model.chat(request("there"))).content == "Hello"
        redis.thaw()
        await asyncio.sleep(1.2)
        assert (await model.chat(request("there"))).cache_status is CacheStatus.HIT
        redis.stop()
        assert (await added_milliseconds(model, up, 40, "stopped"))[1] < usual + 50
        redis.start()
        await asyncio.sleep(1.2)
        await model.chat(request("again"))
        assert (await model.chat(request("again"))).cache_status is CacheStatus.HIT
        assert "fault" in model.observer.cache_events
        assert "skipped" in model.observer.cache_events


async def test_inf_5_a_cache_that_is_away_warns_once_a_minute(tmp_path, monkeypatch):
    warnings = []

    class Log:
        def warning(self, text):
            warnings.append(text)

    monkeypatch.setattr(main, "_log", Log())
    async with (
        fake_upstream() as up,
        governed(
            tmp_path, endpoint(up.base_url), redis_url=f"redis://:hunter2secret@127.0.0.1:{free_port()}/0"
        ) as model,
    ):
        for n in range(10):
            await model.chat(request(str(n)))
    assert len(warnings) == 1
    assert "hunter2secret" not in warnings[0]


@pytest.mark.parametrize("value", ["0", "-1", "NaN", "nan", "inf", "abc", "true", "1.5", " ", "1e3", "99999999999999"])
def test_inf_5_a_lifetime_that_is_none_stops_the_start_and_names_the_variable(monkeypatch, value):
    monkeypatch.setenv("REDIS_CACHE_TTL", value)
    with pytest.raises(ConfigError, match="REDIS_CACHE_TTL"):
        load_section(InferenceConfig, "inference")


@pytest.mark.parametrize("value", ["true", "0", "-1", "nan", "inf", "1.0", '"abc"'])
def test_inf_5_a_lifetime_in_the_file_is_checked_too(monkeypatch, tmp_path, value):
    (tmp_path / "videotree.toml").write_text(f"[inference]\nredis_cache_ttl = {value}\n")
    monkeypatch.setenv("VIDEOTREE_CONFIG", str(tmp_path / "videotree.toml"))
    with pytest.raises(ConfigError, match="redis_cache_ttl"):
        load_section(InferenceConfig, "inference")


def test_inf_5_the_default_lifetime_is_seven_days(monkeypatch):
    monkeypatch.delenv("REDIS_CACHE_TTL", raising=False)
    assert load_section(InferenceConfig, "inference").redis_cache_ttl == 7 * 86_400
    monkeypatch.setenv("REDIS_CACHE_TTL", "")  # a compose file can't leave a variable out
    assert load_section(InferenceConfig, "inference").redis_cache_ttl == 7 * 86_400
    monkeypatch.setenv("REDIS_CACHE_TTL", "3600")
    assert load_section(InferenceConfig, "inference").redis_cache_ttl == 3600
