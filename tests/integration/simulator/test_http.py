"""The simulator as a process: routes, bytes, faults, signals (SIM-1, SIM-2)."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from services.inference.domain.completion_stream import CompletionStream
from services.inference.domain.sse import SseDecoder
from services.simulator.domain.fault_kinds import FAULT_KINDS, HARMLESS_KINDS
from tests.builders.simulated_world import SAMPLE, opening

ROOT = Path(__file__).resolve().parents[3]
CHAT = {"model": "sim-agent", "messages": opening("Search.", "Who eats?", ["A cook", "A dog"], "- v_1 [0s-9s] A cook.")}


class Process:
    """A simulator on a free port."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "services.simulator.main", "--port", "0", *arguments]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}"}
        self.child = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment)
        assert self.child.stderr is not None
        line = self.child.stderr.readline()
        found = re.search(r'"port": ?(\d+)', line)
        assert found, line + self.child.stderr.read()
        self.url = f"http://127.0.0.1:{found[1]}"

    def stop(self) -> int:
        self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(10)
        finally:
            self.child.kill()
            assert self.child.stderr is not None
            self.child.stderr.close()


@pytest.fixture(scope="module")
def simulator() -> Iterator[Process]:
    process = Process("--world", str(SAMPLE / "world.toml"))
    yield process
    process.stop()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20)) as session:
        yield session


async def stream(
    client: aiohttp.ClientSession, url: str, fault: str = "none", body: object = None
) -> tuple[int, bytes, aiohttp.ClientResponse]:
    payload = body or {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    headers = {"X-Simulator-Fault": fault}
    async with client.post(f"{url}/v1/chat/completions", json=payload, headers=headers) as response:
        return response.status, await response.read(), response


def parsed(body: bytes) -> CompletionStream:
    decoder, found = SseDecoder(), CompletionStream()
    for event in [*decoder.feed(body), *decoder.close()]:
        found.take(event)
    return found


async def test_sim_1_models_are_listed(simulator: Process, client: aiohttp.ClientSession) -> None:
    async with client.get(f"{simulator.url}/v1/models") as response:
        names = {one["id"] for one in (await response.json())["data"]}
    assert names == {"sim-agent", "sim-dice", "sim-judge", "sim-evolve", "sim-tool", "sim-vision", "sim-embed"}


async def test_sim_1_the_stream_and_the_whole_answer_say_the_same_byte_for_byte(
    simulator: Process, client: aiohttp.ClientSession
) -> None:
    _, first, response = await stream(client, simulator.url)
    _, second, _ = await stream(client, simulator.url)
    assert first == second
    assert response.content_type == "text/event-stream"
    async with client.post(f"{simulator.url}/v1/chat/completions", json=CHAT) as whole:
        record = await whole.json()
    completion = parsed(first).completion("m")
    assert completion.content == record["choices"][0]["message"]["content"]
    assert completion.usage is not None
    assert completion.usage.total_tokens == record["usage"]["total_tokens"]
    assert json.loads(completion.content)["action"]["tool"] == "search_similar"


async def test_embeddings_come_as_numbers_or_packed(simulator: Process, client: aiohttp.ClientSession) -> None:
    url = f"{simulator.url}/v1/embeddings"
    async with client.post(url, json={"model": "sim-embed", "input": ["a cook", "a dog"]}) as response:
        rows = (await response.json())["data"]
    assert [row["index"] for row in rows] == [0, 1]
    assert len(rows[0]["embedding"]) == 256
    async with client.post(url, json={"model": "sim-embed", "input": "x", "encoding_format": "base64"}) as response:
        assert isinstance((await response.json())["data"][0]["embedding"], str)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("chat/completions", b"{", 400),
        ("chat/completions", b"[]", 400),
        ("chat/completions", b'{"model": "gpt-9", "messages": [{}]}', 404),
        ("chat/completions", b'{"model": "sim-agent", "messages": 3}', 400),
        ("embeddings", b'{"model": "sim-agent", "input": "x"}', 404),
        ("embeddings", b'{"model": "sim-embed", "input": 3}', 400),
    ],
)
async def test_a_wrong_request_gets_an_openai_error(
    simulator: Process, client: aiohttp.ClientSession, path: str, body: bytes, status: int
) -> None:
    async with client.post(f"{simulator.url}/v1/{path}", data=body) as response:
        assert response.status == status
        assert (await response.json())["error"]["code"] == status


@pytest.mark.parametrize("kind", sorted(HARMLESS_KINDS))
async def test_sim_2_harmless_forms_carry_the_whole_answer(
    simulator: Process, client: aiohttp.ClientSession, kind: str
) -> None:
    _, sound, _ = await stream(client, simulator.url)
    status, body, _ = await stream(client, simulator.url, f"{kind}; hold_seconds=0.05")
    assert status == 200
    assert parsed(body).terminal
    assert parsed(body).completion("m").content == parsed(sound).completion("m").content


@pytest.mark.parametrize(("kind", "status"), [("rate_limited", 429), ("server_error", 503), ("bad_request", 400)])
async def test_sim_2_refusals_have_their_status(
    simulator: Process, client: aiohttp.ClientSession, kind: str, status: int
) -> None:
    found, body, response = await stream(client, simulator.url, f"{kind}; retry_after=7")
    assert found == status
    assert json.loads(body)["error"]["code"] == status
    assert response.headers.get("Retry-After") == ("7" if kind == "rate_limited" else None)


@pytest.mark.parametrize("kind", ["reset_before", "reset_after", "stalled", "silent"])
@pytest.mark.parametrize("streamed", [True, False])
async def test_sim_2_resets_break_the_connection(
    simulator: Process, client: aiohttp.ClientSession, kind: str, streamed: bool
) -> None:
    with pytest.raises((aiohttp.ClientConnectionError, aiohttp.ClientPayloadError)):
        await stream(client, simulator.url, f"{kind}; hold_seconds=0.05", {**CHAT, "stream": streamed})


async def test_sim_2_a_reset_comes_after_the_chunks_asked_for(
    simulator: Process, client: aiohttp.ClientSession
) -> None:
    headers = {"X-Simulator-Fault": "reset_after; after_chunks=3"}
    body = {**CHAT, "stream": True}
    seen: list[bytes] = []
    async with client.post(f"{simulator.url}/v1/chat/completions", json=body, headers=headers) as response:
        with pytest.raises((aiohttp.ClientConnectionError, aiohttp.ClientPayloadError)):
            await _collect(response, seen)
    assert b"".join(seen).count(b"data: ") == 3


async def _collect(response: aiohttp.ClientResponse, seen: list[bytes]) -> None:
    async for piece in response.content.iter_any():
        seen += [piece]


async def test_sim_2_a_clean_cut_has_no_terminal_signal(simulator: Process, client: aiohttp.ClientSession) -> None:
    status, body, _ = await stream(client, simulator.url, "clean_cut; after_chunks=1")
    assert status == 200
    assert not parsed(body).terminal
    assert body.count(b"data: ") == 1


async def test_sim_2_length_cuts_the_text_and_says_so(simulator: Process, client: aiohttp.ClientSession) -> None:
    _, sound, _ = await stream(client, simulator.url)
    _, body, _ = await stream(client, simulator.url, "length")
    cut, whole = parsed(body).completion("m"), parsed(sound).completion("m")
    assert cut.finish_reason == "length"
    assert whole.content.startswith(cut.content)
    assert len(cut.content) < len(whole.content)


async def test_sim_2_errors_pages_and_nothing_inside_a_200(simulator: Process, client: aiohttp.ClientSession) -> None:
    status, body, _ = await stream(client, simulator.url, "stream_error; after_chunks=1")
    assert status == 200
    assert b'data: {"error"' in body
    assert b"[DONE]" not in body
    status, body, response = await stream(client, simulator.url, "html")
    assert (status, response.content_type) == (200, "text/html")
    assert b"<html>" in body
    assert (await stream(client, simulator.url, "empty"))[:2] == (200, b"")


async def test_every_fault_kind_is_delivered_without_breaking_the_server(
    simulator: Process, client: aiohttp.ClientSession
) -> None:
    async def one(kind: str, streamed: bool) -> None:
        with suppress(aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
            await stream(client, simulator.url, f"{kind}; hold_seconds=0.01", {**CHAT, "stream": streamed})

    await asyncio.gather(*(one(kind, streamed) for kind in FAULT_KINDS for streamed in (True, False)))
    async with client.get(f"{simulator.url}/stats") as response:
        stats = await response.json()
    assert set(stats["faults"]) == set(FAULT_KINDS)
    assert stats["in_flight"] == 0


async def test_a_client_that_leaves_frees_its_request(simulator: Process, client: aiohttp.ClientSession) -> None:
    with pytest.raises(asyncio.TimeoutError):
        async with asyncio.timeout(0.2):
            await stream(client, simulator.url, "silent; hold_seconds=30")
    deadline = time.monotonic() + 5
    in_flight = 1
    while in_flight and time.monotonic() < deadline:
        async with client.get(f"{simulator.url}/stats") as response:
            in_flight = (await response.json())["in_flight"]
    assert in_flight == 0


async def test_sim_2_the_worlds_faults_and_latency_are_drawn_and_end(
    tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    world = tmp_path / "world.toml"
    world.write_text(
        "[latency]\nmedian_ms = 60\nsigma = 0.0\ntoken_ms = 2\n"
        "[faults]\nattempts_per_prompt = 1\n[faults.rates]\nserver_error = 1.0\n"
    )
    process = Process("--world", str(world))
    body = {**CHAT, "stream": True}

    async def ask() -> int:
        async with client.post(f"{process.url}/v1/chat/completions", json=body) as response:
            await response.read()
            return response.status

    started = time.monotonic()
    try:
        assert [await ask(), await ask()] == [503, 200]
    finally:
        assert process.stop() == 0
    assert time.monotonic() - started >= 0.12


def test_sigterm_ends_the_process_with_0_even_with_a_held_request() -> None:
    process = Process()
    command = ["curl", "-sN", "-H", "X-Simulator-Fault: silent; hold_seconds=60", "-d", json.dumps(CHAT)]
    held = subprocess.Popen([*command, f"{process.url}/v1/chat/completions"])
    time.sleep(0.3)
    started = time.monotonic()
    assert process.stop() == 0
    assert time.monotonic() - started < 5
    held.wait(5)


def test_a_faulty_world_stops_the_start_with_a_message(tmp_path: Path) -> None:
    world = tmp_path / "world.toml"
    world.write_text("sed = 1")
    command = [sys.executable, "-m", "services.simulator.main", "--port", "0", "--world", str(world)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}"}
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    assert found.returncode == 1
    assert "sed" in found.stderr
    assert "Traceback" not in found.stderr
