"""Start-up time, resident memory when idle, and the duration of the sample training (QUA-5).

    python -m bench.start [--quick]

`videotree up --simulated` in an empty data root, from the start of the command to the moment at which all four services
answer SERVING; its ports 50051 to 50054 must be free. Memory is that of each process after ten idle seconds. Then
`videotree train --demo` in another empty data root, as `make train` runs it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop

from bench.children import python_child, resident_mib
from bench.record import Figure, at_most, table, write
from services.trainer.adapters.embedded_stack import DEFAULT_PORTS, accepts, is_serving

START_SECONDS, IDLE_MIB, TRAINING_SECONDS = 5.0, 120.0, 90.0
_COMMAND = "services.trainer.main"


async def measure_start(runs: int, idle_seconds: float) -> list[Figure]:
    """Median start of `runs`, and the memory of the last one's services."""
    times, memory = [], dict[str, float]()
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as name:
            seconds, memory = await _one_start(Path(name), idle_seconds)
        times.append(seconds)
    figures = [at_most("all services serving after `videotree up`", times, "s", START_SECONDS)]
    return figures + [at_most(f"{name}: resident when idle", mib, "MiB", IDLE_MIB) for name, mib in memory.items()]


async def _one_start(folder: Path, idle_seconds: float) -> tuple[float, dict[str, float]]:
    _require_free_ports()
    began = time.perf_counter()
    async with python_child(_COMMAND, "up", "--simulated", "--data", "data", folder=folder, environment={}) as process:
        waiting = set(DEFAULT_PORTS)
        while waiting:
            if time.perf_counter() - began > 120:
                raise RuntimeError(f"{', '.join(sorted(waiting))} did not serve within 120 s")
            for name in sorted(waiting):
                port = DEFAULT_PORTS[name]
                if await accepts(port) and await is_serving(f"127.0.0.1:{port}"):
                    waiting.discard(name)
            await asyncio.sleep(0.02)
        seconds = time.perf_counter() - began
        await asyncio.sleep(idle_seconds)
        return seconds, {name: resident_mib(child) for name, child in _services_of(process.pid)}


def _require_free_ports() -> None:
    for name, port in DEFAULT_PORTS.items():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                raise RuntimeError(f"port {port} of {name} is taken; stop what listens there and start again") from None


def _services_of(parent: int) -> Iterator[tuple[str, int]]:
    """Names and pids of the services that a process started."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            status = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes().decode().split("\0")
            if int(status[1]) == parent and "-m" in command:
                yield command[command.index("-m") + 1].split(".")[1], int(entry.name)


async def measure_training() -> Figure:
    """Wall time of the demo, from the command to its end."""
    with tempfile.TemporaryDirectory() as name:
        folder, began = Path(name), time.perf_counter()
        arguments = ("train", "--demo", "--data", "data")
        async with python_child(_COMMAND, *arguments, folder=folder, environment={}) as process:
            code = await process.wait()
        seconds = time.perf_counter() - began
        if code != 0:
            raise RuntimeError(f"the demo failed: {_last_words(folder)}")
    return at_most("sample training, all included", seconds, "s", TRAINING_SECONDS)


def _last_words(folder: Path) -> str:
    return (folder / f"{_COMMAND}.log").read_text()[-500:]


async def measure(quick: bool) -> list[Figure]:
    """Everything, one after the other."""
    return [*await measure_start(1 if quick else 3, 2 if quick else 10), await measure_training()]


def main(arguments: list[str] | None = None) -> int:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one start and two idle seconds")
    try:
        figures = uvloop.run(measure(parser.parse_args(arguments).quick))
    except RuntimeError as error:
        print(f"start: {error}", file=sys.stderr)
        return 1
    print(table(figures))
    write("start", __doc__ or "", figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
