"""Mixed load for an hour: the resident memory of each service must stay flat (QUA-15).

    python -m bench.soak [--minutes 60] [--warm-up 10]

The embedded stack on free ports of loopback, with the bundled sample and the simulated model. Trainings of the sample
follow one another in one workspace, each a process of its own; beside them, at a bounded rate, model calls (new ones,
repeated ones, some cancelled), reads of the store, simulated gates and edits. Memory is sampled every five seconds.
Flat means: the median of the last tenth of the time after the warm-up is at most 5% above that of its first tenth.
Writes `bench/results/soak.json` and `bench/results/soak.svg`. Not part of `make bench`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import grpc
import uvloop
from videotree.evolver.v1 import edit_pb2, evolver_service_pb2, evolver_service_pb2_grpc
from videotree.gate.v1 import gate_service_pb2, gate_service_pb2_grpc
from videotree.inference.v1 import chat_pb2, model_service_pb2, model_service_pb2_grpc
from videotree.store.v1 import library_service_pb2, library_service_pb2_grpc

from bench.children import ROOT, private_mib, python_child, resident_mib
from bench.record import RESULTS, Figure, at_most, shown, table, write
from services.runtime.channels import ClientCredentials, open_channel
from services.trainer.adapters.embedded_stack import EmbeddedStack, StackOptions, start_stack

SAMPLE_SECONDS = 5.0
PAUSE_SECONDS = 0.05
FLAT = 0.05
_FAILURES = ("failed trainings", "failed chats")
_SKILL = "---\nname: a\ndescription: b\n---\nLook twice at each event, and name the scene that shows it.\n"

Samples = dict[str, list[tuple[float, float, float]]]
"""By process: seconds since the start, resident MiB, and MiB of it that no file stands behind."""


async def soak(minutes: float) -> tuple[Samples, dict[str, int]]:
    """Memory in MiB of each process by seconds since the start, and how often each piece of the load was done."""
    counts = {
        "trainings": 0,
        "failed trainings": 0,
        "chats": 0,
        "failed chats": 0,
        "cancelled chats": 0,
        "reads": 0,
        "simulated gates": 0,
        "edits": 0,
    }
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    stack = await start_stack(StackOptions(folder / "data", ROOT / "examples" / "sample" / "world.toml"))
    try:
        samples = await _under_load(stack, folder, time.monotonic() + minutes * 60, counts)
    except BaseException:
        print(f"the load broke off; data and logs stay in {folder}", file=sys.stderr)
        raise
    finally:
        await stack.stop()
    if any(counts[what] for what in _FAILURES):
        print(f"something failed; data and logs stay in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return samples, counts


async def _under_load(stack: EmbeddedStack, folder: Path, until: float, counts: dict[str, int]) -> Samples:
    samples: Samples = {child.name: [] for child in stack.children}
    async with contextlib.AsyncExitStack() as channels:
        opened = {
            name: await channels.enter_async_context(open_channel(address, ClientCredentials()))
            for name, address in stack.addresses.items()
        }
        works = [
            _trainings(stack, folder, until, counts),
            _again(until, _chats(opened["inference"], counts)),
            _again(until, _reads(opened["store"], counts)),
            _again(until, _gates(opened["gate"], counts)),
            _again(until, _edits(opened["evolver"], counts)),
            _sample(stack, until, samples),
        ]
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    return samples


async def _sample(stack: EmbeddedStack, until: float, samples: Samples) -> None:
    began = time.monotonic()
    while time.monotonic() < until:
        for child in stack.children:
            child.require_alive()
            samples[child.name].append((time.monotonic() - began, resident_mib(child.pid), private_mib(child.pid)))
        await asyncio.sleep(SAMPLE_SECONDS)


async def _trainings(stack: EmbeddedStack, folder: Path, until: float, counts: dict[str, int]) -> None:
    """One training after the other; the last one is ended when the time is over."""
    addresses = {f"VIDEOTREE_{name.upper()}_ADDRESS": address for name, address in stack.addresses.items()}
    for number in itertools.count(1):
        command = ("train", "--demo", "--workspace", "soak", "--run-id", f"soak-{number}")
        async with python_child("services.trainer.main", *command, folder=folder, environment=addresses) as process:
            with contextlib.suppress(TimeoutError):
                code = await asyncio.wait_for(process.wait(), max(0.0, until - time.monotonic()))
                if code != 0:
                    print(f"training {number} failed: {_tail(folder)}", file=sys.stderr)
                counts["trainings" if code == 0 else "failed trainings"] += 1
        if time.monotonic() >= until:
            return


def _tail(folder: Path) -> str:
    return (folder / "services.trainer.main.log").read_text()[-600:]


async def _again(until: float, work: Callable[[int], Awaitable[None]]) -> None:
    for number in itertools.count():
        if time.monotonic() >= until:
            return
        await work(number)
        await asyncio.sleep(PAUSE_SECONDS)


def _chats(channel: grpc.aio.Channel, counts: dict[str, int]) -> Callable[[int], Awaitable[None]]:
    stub = model_service_pb2_grpc.ModelServiceStub(channel)

    async def work(number: int) -> None:
        text = f"<question>\nWho runs?\n</question>\n<text>\nScene {number // 2}: a dog runs. A door opens.\n</text>"
        message = chat_pb2.Message(role="user", parts=[chat_pb2.ContentPart(text=text)])
        call = chat_pb2.ChatCall(role=chat_pb2.ROLE_TOOL, messages=[message])
        pending = stub.StreamChat(model_service_pb2.StreamChatRequest(call=call), timeout=60)
        if number % 20 == 19:
            pending.cancel()
            counts["cancelled chats"] += 1
            return
        try:
            async for _ in pending:
                pass
        except grpc.aio.AioRpcError as error:
            counts["failed chats"] += 1
            endpoints = (await stub.ListEndpoints(model_service_pb2.ListEndpointsRequest(), timeout=60)).endpoints
            print(f"chat {number} failed: {error.code().name} {error.details()}; {endpoints}", file=sys.stderr)
            return
        counts["chats"] += 1

    return work


def _reads(channel: grpc.aio.Channel, counts: dict[str, int]) -> Callable[[int], Awaitable[None]]:
    stub = library_service_pb2_grpc.LibraryServiceStub(channel)

    async def work(number: int) -> None:
        with contextlib.suppress(grpc.aio.AioRpcError):  # until the first training has imported the sample
            await stub.ListQuestions(library_service_pb2.ListQuestionsRequest(dataset="sample", page_size=100))
            counts["reads"] += 1

    return work


def _gates(channel: grpc.aio.Channel, counts: dict[str, int]) -> Callable[[int], Awaitable[None]]:
    stub = gate_service_pb2_grpc.GateServiceStub(channel)

    async def work(number: int) -> None:
        cell = gate_service_pb2.FlipRates(win=0.2, loss=0.1)
        request = gate_service_pb2.SimulateGateRequest(ladder_length=60, gate_count=200, cells=[cell], seed=number)
        await stub.SimulateGate(request)
        counts["simulated gates"] += 1

    return work


def _edits(channel: grpc.aio.Channel, counts: dict[str, int]) -> Callable[[int], Awaitable[None]]:
    stub = evolver_service_pb2_grpc.EvolverServiceStub(channel)

    async def work(number: int) -> None:
        edit = edit_pb2.Edit(op=edit_pb2.EDIT_OP_APPEND, content=f"Then look at scene {number}.")
        await stub.ApplyEdits(evolver_service_pb2.ApplyEditsRequest(skill_text=_SKILL, edits=[edit]))
        counts["edits"] += 1

    return work


def growth(
    points: Sequence[tuple[float, float, float]], warm_up_seconds: float, column: int
) -> tuple[float, float, float]:
    """Median of a column in the first and in the last tenth after the warm-up, and the growth between them."""
    settled = [point[column] for point in points if point[0] >= warm_up_seconds]
    if len(settled) < 10:
        raise RuntimeError("the load was too short for a verdict: give it more --minutes or less --warm-up")
    tenth = len(settled) // 10
    first, last = statistics.median(settled[:tenth]), statistics.median(settled[-tenth:])
    return first, last, last / first - 1


def figures_of(samples: Samples, warm_up_seconds: float, counts: Mapping[str, int]) -> list[Figure]:
    """A row for each process and for each piece of the load."""
    figures = []
    for name, points in samples.items():
        first, last, grown = growth(points, warm_up_seconds, 1)
        what, bar = f"{name}: growth after the warm-up", f"<= {FLAT:.0%}"
        figures.append(Figure(what, grown * 100, "%", bar, grown <= FLAT, f"{first:.1f} MiB, then", last))
        figures.append(shown(f"{name}: of it without mapped files", growth(points, warm_up_seconds, 2)[2] * 100, "%"))
    figures += [at_most(what, counts[what], "", 0) for what in _FAILURES]
    return figures + [shown(what, count, "") for what, count in counts.items() if what not in _FAILURES]


def plot(samples: Samples, warm_up_seconds: float) -> None:
    """Memory of each process over time."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(8, 4), layout="constrained")
    axes = canvas.add_subplot()
    for name, points in samples.items():
        axes.plot([point[0] / 60 for point in points], [point[1] for point in points], label=name)
    axes.axvline(warm_up_seconds / 60, color="grey", linestyle=":")
    axes.set(xlabel="minutes", ylabel="resident MiB", ylim=(0, None), title="Memory under mixed load")
    axes.legend()
    canvas.savefig(RESULTS / "soak.svg")


def main(arguments: list[str] | None = None) -> int:
    """Loads, prints, writes; 1 when a service grew or a training failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="length of the load")
    parser.add_argument("--warm-up", type=float, default=10.0, help="minutes that don't count")
    options = parser.parse_args(arguments)
    warm_up = options.warm_up * 60
    samples, counts = uvloop.run(soak(options.minutes))
    figures = figures_of(samples, warm_up, counts)
    print(table(figures))
    series = {name: [[round(value, 1) for value in point] for point in each] for name, each in samples.items()}
    details = {"minutes": options.minutes, "warm_up_minutes": options.warm_up, "seconds_resident_private": series}
    write("soak", __doc__ or "", figures, details)
    plot(samples, warm_up)
    broken = [figure.what for figure in figures if figure.met is False]
    if broken:
        print(f"short: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
