"""The governed call's figures (QUA-1), beside LiteLLM's proxy where it is installed.

    make bench-inference            # or: python -m bench.inference [--seconds 4]

One worker each, the same upstream, the same machine, one after the other; ratios count, not the times. LiteLLM lives
in a virtual environment of its own: `python -m venv build/litellm && build/litellm/bin/pip install 'litellm[proxy]'`.
Prints a table and writes `bench/results/inference.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp
import uvloop
from videotree.inference.v1 import chat_pb2
from videotree.inference.v1 import model_service_pb2 as pb
from videotree.inference.v1.model_service_pb2_grpc import ModelServiceStub

from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.testing import free_port

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
LITELLM = ROOT / "build" / "litellm" / "bin" / "litellm"
WIDTHS = (1, 16, 64)
PROMPT = "You are an agent that looks at a video tree. " * 20

Call = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured run: calls a second and the latencies' percentiles in milliseconds."""

    system: str
    kind: str
    width: int
    calls_per_second: float
    p50_ms: float
    p99_ms: float
    calls: int


async def measured(system: str, kind: str, width: int, call: Call, seconds: float) -> Figure:
    """`call` in `width` tasks for `seconds`, after a tenth of that to warm up."""
    numbers = itertools.count()
    times: list[float] = []

    async def work(until: float, keep: bool) -> None:
        while (began := time.perf_counter()) < until:
            await call(next(numbers))
            if keep:
                times.append(time.perf_counter() - began)

    for length, keep in ((max(0.3, seconds / 10), False), (seconds, True)):
        start = time.perf_counter()
        await asyncio.gather(*(work(start + length, keep) for _ in range(width)))
    took = time.perf_counter() - start
    times.sort()
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    figure = Figure(system, kind, width, len(times) / took, statistics.median(times) * 1000, p99 * 1000, len(times))
    print(f"{system:12} {kind:8} c={width:<3} {figure.calls_per_second:9.1f}/s  p50 {figure.p50_ms:8.2f} ms  "
          f"p99 {figure.p99_ms:8.2f} ms", flush=True)  # fmt: skip
    return figure


@contextlib.contextmanager
def process(*command: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A child for the length of a measurement; what it writes goes nowhere."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}", **environment}
    child = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


async def answers(url: str, seconds: float = 120) -> None:
    """Return once a GET of `url` is answered in any way."""
    async with aiohttp.ClientSession() as session:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with session.get(url, timeout=aiohttp.ClientTimeout(total=2)):
                    return
            await asyncio.sleep(0.2)
    raise RuntimeError(f"nothing answers at {url}")


def body(model: str, number: int, *, stream: bool) -> dict[str, object]:
    """An OpenAI request that differs from the others by its number."""
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": f"question {number}"}]
    return {"model": model, "messages": messages, "temperature": 0, "stream": stream}


@contextlib.asynccontextmanager
async def http_calls(url: str) -> AsyncIterator[Callable[[str, bool], Callable[[int], Awaitable[None]]]]:
    """Makes calls over HTTP: `(model, stream)` to a call by number."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers={"authorization": "Bearer sk-bench"}) as session:

        def make(model: str, stream: bool) -> Call:
            async def call(number: int) -> None:
                async with session.post(url, json=body(model, number, stream=stream)) as response:
                    text = await response.read()
                    if response.status != 200 or b"word" not in text:
                        raise RuntimeError(f"{response.status}: {text[:300]!r}")

            return call

        yield make


async def direct(upstream: int, seconds: float) -> list[Figure]:
    """The upstream alone, with the same HTTP library as client."""
    async with http_calls(f"http://127.0.0.1:{upstream}/v1/chat/completions") as make:
        runs = (("unary", make("m", False)), ("stream", make("stream20", True)))
        return [await measured("direct", kind, width, call, seconds) for kind, call in runs for width in WIDTHS]


async def governed(upstream: int, seconds: float) -> list[Figure]:
    """This project's service over gRPC: cache off, 20-chunk streams, and hits of the disk cache."""
    port = free_port()
    with tempfile.TemporaryDirectory() as directory, process(
        sys.executable, "-m", "services.inference.main", "--port", str(port), "--metrics-port", "0",
        LLM_BASE_URL=f"http://127.0.0.1:{upstream}/v1", LLM_MODEL="m", VISION_LLM_MODEL="stream20",
        VIDEOTREE_CACHE_DIR=directory, VIDEOTREE_CONFIG=os.devnull, VIDEOTREE_INFERENCE_CONCURRENCY_LIMIT="128",
        VIDEOTREE_STORE_ADDRESS=f"127.0.0.1:{free_port()}",
    ):  # fmt: skip
        async with open_channel(f"127.0.0.1:{port}", ClientCredentials()) as channel:
            await asyncio.wait_for(channel.channel_ready(), 60)
            stub = ModelServiceStub(channel)
            runs = (("unary", _unary(stub)), ("stream", _stream(stub)), ("hit", _hit(stub)))
            return [await measured("videotree", kind, width, call, seconds) for kind, call in runs for width in WIDTHS]


def _chat_call(number: int, role: chat_pb2.Role, mode: chat_pb2.CacheMode) -> chat_pb2.ChatCall:
    texts = (("system", PROMPT), ("user", f"question {number}"))
    messages = [chat_pb2.Message(role=role_, parts=[chat_pb2.ContentPart(text=text)]) for role_, text in texts]
    return chat_pb2.ChatCall(role=role, messages=messages, parameters_json='{"temperature":0}', cache_mode=mode)


def _unary(stub: ModelServiceStub) -> Call:
    async def call(number: int) -> None:
        wanted = _chat_call(number, chat_pb2.ROLE_AGENT, chat_pb2.CACHE_MODE_BYPASS)
        answer = await stub.Chat(pb.ChatRequest(call=wanted))
        assert answer.result.content == "word "

    return call


def _stream(stub: ModelServiceStub) -> Call:
    async def call(number: int) -> None:
        wanted = _chat_call(number, chat_pb2.ROLE_VISION, chat_pb2.CACHE_MODE_BYPASS)
        deltas = 0
        async for event in stub.StreamChat(pb.StreamChatRequest(call=wanted)):
            deltas += event.WhichOneof("event") == "content_delta"
        assert deltas == 20

    return call


def _hit(stub: ModelServiceStub) -> Call:
    async def call(number: int) -> None:
        wanted = _chat_call(number % 50, chat_pb2.ROLE_AGENT, chat_pb2.CACHE_MODE_USE)
        await stub.Chat(pb.ChatRequest(call=wanted))

    return call


async def litellm(upstream: int, seconds: float) -> list[Figure]:
    """LiteLLM's proxy with one worker: cache off, 20-chunk streams, then hits of its in-memory cache."""
    figures: list[Figure] = []
    for cached in (False, True):
        port = free_port()
        with tempfile.TemporaryDirectory() as directory:
            config = Path(directory) / "config.yaml"
            config.write_text(json.dumps(_litellm_config(upstream, cached)))
            with process(
                str(LITELLM), "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1",
                LITELLM_LOG="ERROR", LITELLM_MASTER_KEY="sk-bench", LITELLM_LOCAL_MODEL_COST_MAP="True",
            ):  # fmt: skip
                await answers(f"http://127.0.0.1:{port}/health/liveliness")
                async with http_calls(f"http://127.0.0.1:{port}/v1/chat/completions") as make:
                    runs = [("unary", make("m", False)), ("stream", make("stream20", True))]
                    if cached:
                        plain = make("m", False)
                        runs = [("hit", lambda number, plain=plain: plain(number % 50))]
                    for kind, call in runs:
                        figures += [await measured("litellm", kind, width, call, seconds) for width in WIDTHS]
    return figures


def _litellm_config(upstream: int, cached: bool) -> dict[str, object]:
    base = f"http://127.0.0.1:{upstream}/v1"
    models = [
        {"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_base": base, "api_key": "k"}}
        for name in ("m", "stream20")
    ]
    settings: dict[str, object] = {"telemetry": False, "num_retries": 0}
    if cached:
        settings |= {"cache": True, "cache_params": {"type": "local"}}
    return {"model_list": models, "litellm_settings": settings}


def bars(figures: list[Figure]) -> list[dict[str, object]]:
    """QUA-1's bars and what was measured; those against LiteLLM only where it ran."""
    by = {(f.system, f.kind, f.width): f for f in figures}
    added = by["videotree", "unary", 1].p50_ms - by["direct", "unary", 1].p50_ms
    found = [_bar("added latency p50 at c=1", added, "ms", "<= 1.5", added <= 1.5)]
    for kind, least in (("unary", 20), ("hit", 8), ("stream", 10)):
        peer = by.get(("litellm", kind, 16))
        if peer is not None:
            ratio = by["videotree", kind, 16].calls_per_second / peer.calls_per_second
            found.append(_bar(f"{kind} throughput at c=16 to LiteLLM's", ratio, "x", f">= {least}", ratio >= least))
    return found


def _bar(name: str, value: float, unit: str, bar: str, meets: bool) -> dict[str, object]:
    return {"name": name, "value": round(value, 3), "unit": unit, "bar": bar, "meets": meets}


async def run(seconds: float) -> None:
    """Measure, print and write."""
    upstream = free_port()
    with process(sys.executable, "-m", "bench.inference_upstream", str(upstream)):
        await answers(f"http://127.0.0.1:{upstream}/")
        figures = await direct(upstream, seconds)
        figures += await governed(upstream, seconds)
        if LITELLM.exists():
            figures += await litellm(upstream, seconds)
        else:
            print(f"LiteLLM is not measured: no {LITELLM.relative_to(ROOT)}")
    found = bars(figures)
    for bar in found:
        print(
            f"{bar['name']:45} {bar['value']:>10} {bar['unit']:3} {bar['bar']:8} {'ok' if bar['meets'] else 'MISSED'}"
        )
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"bars": found, "figures": [asdict(figure) for figure in figures]}, indent=1)
    (RESULTS / "inference.json").write_text(text + "\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each run")
    uvloop.run(run(parser.parse_args().seconds))


if __name__ == "__main__":
    main()
