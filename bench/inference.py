"""The governed call's figures (QUA-1), beside LiteLLM's proxy where it is installed.

    python -m bench.inference [--seconds 1]

One worker each, the same upstream, the same machine; all are up at once and take turns, so that ratios count and not
the machine's mood; medians of three turns. The server's processor time a call tells most on a busy machine. An answer
from our service's stream may have fewer messages than the upstream's has chunks: what came together is sent together.
Beside it stands what it is built on with nothing governed (`bench.inference_bare`): what that reaches on a machine, no
governed call can exceed. Without LiteLLM its ratios are left out. LiteLLM lives in a virtual environment of its own:
`python -m venv build/litellm && build/litellm/bin/pip install 'litellm[proxy]'`.
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
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp
import uvloop
from videotree.inference.v1 import chat_pb2
from videotree.inference.v1 import model_service_pb2 as pb
from videotree.inference.v1.model_service_pb2_grpc import ModelServiceStub

from bench.children import cpu_seconds
from bench.record import Figure, at_most, median_with_spread, shown, table, write
from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.testing import free_port

ROOT = Path(__file__).parents[1]
LITELLM = ROOT / "build" / "litellm" / "bin" / "litellm"
WIDTHS = (1, 16, 64)
KINDS = ("unary", "stream", "hit")
TURNS = 3
PROMPT = "You are an agent that looks at a video tree. " * 20

Call = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Target:
    """How one kind of call is made, and the process that serves it where its processor time counts."""

    call: Call
    pid: int | None = None


Calls = Mapping[str, Target]


@dataclass(frozen=True, slots=True)
class Run:
    """One measured run: calls a second, the latencies' percentiles and the server's processor time a call in ms."""

    system: str
    kind: str
    width: int
    calls_per_second: float
    p50_ms: float
    p99_ms: float
    calls: int
    server_cpu_ms: float | None


async def measured(system: str, kind: str, width: int, target: Target, seconds: float) -> Run:
    """`target` called in `width` tasks for `seconds`, after a tenth of that to warm up."""
    numbers = itertools.count()
    times: list[float] = []

    async def work(until: float, keep: bool) -> None:
        while (began := time.perf_counter()) < until:
            await target.call(next(numbers))
            if keep:
                times.append(time.perf_counter() - began)

    for length, keep in ((max(0.3, seconds / 10), False), (seconds, True)):
        used = 0.0 if target.pid is None else cpu_seconds(target.pid)
        start = time.perf_counter()
        await asyncio.gather(*(work(start + length, keep) for _ in range(width)))
    took = time.perf_counter() - start
    times.sort()
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    cpu_ms = None if target.pid is None else (cpu_seconds(target.pid) - used) / len(times) * 1000
    run = Run(system, kind, width, len(times) / took, statistics.median(times) * 1000, p99 * 1000, len(times), cpu_ms)
    shown_cpu = "" if cpu_ms is None else f"  server CPU {cpu_ms:6.2f} ms"
    print(f"{system:12} {kind:8} c={width:<3} {run.calls_per_second:9.1f}/s  p50 {run.p50_ms:8.2f} ms  "
          f"p99 {run.p99_ms:8.2f} ms{shown_cpu}", flush=True)  # fmt: skip
    return run


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
    # Less than the 5 s after which uvicorn closes an idle connection.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=4)
    async with aiohttp.ClientSession(connector=connector, headers={"authorization": "Bearer sk-bench"}) as session:

        def make(model: str, stream: bool) -> Call:
            async def call(number: int) -> None:
                async with session.post(url, json=body(model, number, stream=stream)) as response:
                    text = await response.read()
                    if response.status != 200 or b"word" not in text:
                        raise RuntimeError(f"{response.status}: {text[:300]!r}")

            return call

        yield make


@contextlib.asynccontextmanager
async def direct(upstream: int) -> AsyncIterator[Calls]:
    """The upstream alone, with the same HTTP library as client."""
    async with http_calls(f"http://127.0.0.1:{upstream}/v1/chat/completions") as make:
        yield {"unary": Target(make("m", False)), "stream": Target(make("stream20", True))}


@contextlib.asynccontextmanager
async def governed(upstream: int) -> AsyncIterator[Calls]:
    """This project's service over gRPC: cache off, 20-chunk streams, and hits of the disk cache."""
    port = free_port()
    with tempfile.TemporaryDirectory() as directory, process(
        sys.executable, "-m", "services.inference.main", "--port", str(port), "--metrics-port", "0",
        LLM_BASE_URL=f"http://127.0.0.1:{upstream}/v1", LLM_MODEL="m", VISION_LLM_MODEL="stream20",
        VIDEOTREE_CACHE_DIR=directory, VIDEOTREE_CONFIG=os.devnull, VIDEOTREE_INFERENCE_CONCURRENCY_LIMIT="128",
        VIDEOTREE_STORE_ADDRESS=f"127.0.0.1:{free_port()}",
    ) as child:  # fmt: skip
        async with open_channel(f"127.0.0.1:{port}", ClientCredentials()) as channel:
            await asyncio.wait_for(channel.channel_ready(), 60)
            stub = ModelServiceStub(channel)
            kinds = {"unary": _unary(stub), "stream": _stream(stub), "hit": _hit(stub)}
            yield {kind: Target(call, child.pid) for kind, call in kinds.items()}


@contextlib.asynccontextmanager
async def bare(upstream: int) -> AsyncIterator[Calls]:
    """The same libraries, ungoverned: unary calls alone."""
    port = free_port()
    with process(sys.executable, "-m", "bench.inference_bare", str(port), str(upstream)) as child:
        async with open_channel(f"127.0.0.1:{port}", ClientCredentials()) as channel:
            await asyncio.wait_for(channel.channel_ready(), 60)
            yield {"unary": Target(_unary(ModelServiceStub(channel)), child.pid)}


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
        # Deltas that came together are one: what counts is the text.
        text = "".join([event.content_delta async for event in stub.StreamChat(pb.StreamChatRequest(call=wanted))])
        assert text == "word " * 20

    return call


def _hit(stub: ModelServiceStub) -> Call:
    async def call(number: int) -> None:
        wanted = _chat_call(number % 50, chat_pb2.ROLE_AGENT, chat_pb2.CACHE_MODE_USE)
        await stub.Chat(pb.ChatRequest(call=wanted))

    return call


@contextlib.asynccontextmanager
async def litellm(upstream: int, *, cached: bool) -> AsyncIterator[Calls]:
    """LiteLLM's proxy with one worker: cache off and 20-chunk streams, or hits of its in-memory cache."""
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "config.yaml"
        config.write_text(json.dumps(_litellm_config(upstream, cached)))
        with process(
            str(LITELLM), "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1",
            LITELLM_LOG="ERROR", LITELLM_MASTER_KEY="sk-bench", LITELLM_LOCAL_MODEL_COST_MAP="True",
        ) as child:  # fmt: skip
            await answers(f"http://127.0.0.1:{port}/health/liveliness")
            async with http_calls(f"http://127.0.0.1:{port}/v1/chat/completions") as make:
                plain = make("m", False)
                if cached:
                    yield {"hit": Target(lambda number: plain(number % 50), child.pid)}
                else:
                    yield {"unary": Target(plain, child.pid), "stream": Target(make("stream20", True), child.pid)}


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


async def turns(systems: Mapping[str, Calls], seconds: float) -> list[Run]:
    """Every kind of call at every width, the systems taking turns."""
    return [
        await measured(system, kind, width, calls[kind], seconds)
        for kind in KINDS
        for width in WIDTHS
        for _ in range(TURNS)
        for system, calls in systems.items()
        if kind in calls
    ]


def figures_of(runs: Sequence[Run]) -> list[Figure]:
    """QUA-1's targets and what was measured; those against LiteLLM only where it ran."""
    latencies = _added_latencies(runs)
    figures = [at_most("added latency p50 at c=1", latencies, "ms", 1.5)]
    for kind, least in (("unary", 20), ("hit", 8), ("stream", 10)):
        rate, spread = median_with_spread(_rates(runs, "videotree", kind))
        what = f"{kind} throughput at c=16"
        if peers := _rates(runs, "litellm", kind):
            peer = statistics.median(peers)
            met, target = rate / peer >= least, f"ratio >= {least}"
            figures.append(Figure(what, rate, "calls/s", target, met, "LiteLLM:", peer, rate / peer, spread))
        else:
            figures.append(shown(f"{what} (no LiteLLM here)", _rates(runs, "videotree", kind), "calls/s"))
    return [*figures, _share_of_bare(runs), *(_cpu_figure(runs, kind) for kind in KINDS)]


def _share_of_bare(runs: Sequence[Run]) -> Figure:
    ours, alone = _rates(runs, "videotree", "unary"), _rates(runs, "bare", "unary")
    shares = [governed / ungoverned for governed, ungoverned in zip(ours, alone, strict=True)]
    share, spread = median_with_spread(shares)
    what, beside = "unary throughput at c=16, of an ungoverned call's", "ungoverned, calls/s:"
    return Figure(what, share * 100, "%", reference=beside, reference_value=statistics.median(alone), spread=spread)


def _cpu_figure(runs: Sequence[Run], kind: str) -> Figure:
    """The server's processor time a call at c=16, which a machine's other work changes least."""
    value, spread = median_with_spread(_cpu_times(runs, "videotree", kind))
    what = f"{kind} server CPU a call at c=16"
    peers = _cpu_times(runs, "litellm", kind)
    if not peers:
        return Figure(what, value, "ms", spread=spread)
    peer = statistics.median(peers)
    return Figure(what, value, "ms", "", None, "LiteLLM:", peer, peer / value, spread)


def _cpu_times(runs: Sequence[Run], system: str, kind: str) -> list[float]:
    wanted = (system, kind, 16)
    return [r.server_cpu_ms for r in runs if (r.system, r.kind, r.width) == wanted and r.server_cpu_ms is not None]


def _rates(runs: Sequence[Run], system: str, kind: str) -> list[float]:
    return [run.calls_per_second for run in runs if (run.system, run.kind, run.width) == (system, kind, 16)]


def _added_latencies(runs: Sequence[Run]) -> list[float]:
    ours, alone = (
        [run.p50_ms for run in runs if (run.system, run.kind, run.width) == (system, "unary", 1)]
        for system in ("videotree", "direct")
    )
    return [through - straight for through, straight in zip(ours, alone, strict=True)]


async def run(seconds: float) -> None:
    """Measure, print and write."""
    upstream = free_port()
    async with contextlib.AsyncExitStack() as up:
        up.enter_context(process(sys.executable, "-m", "bench.inference_upstream", str(upstream)))
        await answers(f"http://127.0.0.1:{upstream}/")
        systems = {
            "direct": await up.enter_async_context(direct(upstream)),
            "bare": await up.enter_async_context(bare(upstream)),
            "videotree": await up.enter_async_context(governed(upstream)),
        }
        if LITELLM.exists():
            systems["litellm"] = {
                **await up.enter_async_context(litellm(upstream, cached=False)),
                **await up.enter_async_context(litellm(upstream, cached=True)),
            }
        else:
            print(f"LiteLLM is not measured: no {LITELLM.relative_to(ROOT)}")
        runs = await turns(systems, seconds)
    figures = figures_of(runs)
    print(table(figures))
    peer = {"litellm": _litellm_version()} if "litellm" in systems else {}
    write("inference", __doc__ or "", figures, {**peer, "runs": [asdict(run) for run in runs]})


def _litellm_version() -> str:
    found = next(LITELLM.parents[1].glob("lib/*/site-packages/litellm-*.dist-info"))
    return found.name.removesuffix(".dist-info").removeprefix("litellm-")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of each turn")
    uvloop.run(run(parser.parse_args().seconds))


if __name__ == "__main__":
    main()
