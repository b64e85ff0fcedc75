"""The gate's figures: wall clock (QUA-2), statistics (QUA-4) and scale (QUA-6).

    python -m bench.gate

Prints a table and writes `bench/results/gate.json` and, when matplotlib is there, `bench/results/gate-scale.svg`.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import uvloop

from bench.gate_neighbours import Latencies, MemoryInference, MemoryStore, agent_process, round_of
from bench.record import RESULTS, Figure, at_least, at_most, shown, table, write
from services.gate.adapters.inference_client import GrpcInference
from services.gate.domain.evidence import Evidence
from services.gate.domain.power import smallest_confirmed_gain
from services.gate.domain.prefix import Prefix
from services.gate.domain.round_spec import RoundOptions, RoundSpec
from services.gate.domain.simulation import FlipRates, simulate
from services.gate.domain.unit_result import Arm, ArmResult
from services.gate.domain.verdict import ExitRule, GateParameters
from services.gate.use_cases.ports import ArmAnswers, ArmCall, Inference
from services.gate.use_cases.validate_skills import ValidateSkills
from services.runtime.channels import ClientCredentials, open_channel

NEVER_STOPS = GateParameters(e_confirm=1e300, lambda_dir=-1e9, delta_min=0.0, w_net_min=0, e_provisional=1 + 1e-9)
WIDTH = 32
SEEDS = range(1, 6)
MIB = 2**20


async def timed(inference: Inference, spec: RoundSpec) -> tuple[float, float]:
    """Wall and CPU seconds of one round without the closing power calculation's first run."""
    store = MemoryStore(spec)
    wall, cpu = time.perf_counter(), time.process_time()
    await ValidateSkills(inference, store).run(spec, lambda event: None)
    return time.perf_counter() - wall, time.process_time() - cpu


async def serial_blocks(inference: Inference, calls: Sequence[Sequence[tuple[ArmCall, ArmCall]]]) -> float:
    """What a loop over types, then blocks of ten units, then arms needs for the same calls."""
    started = time.perf_counter()
    for pairs in calls:
        for start in range(0, len(pairs), 10):
            for arm in (0, 1):
                await asyncio.gather(*(inference.answer(pair[arm]) for pair in pairs[start : start + 10]))
    return time.perf_counter() - started


def greedy(latencies: Sequence[float]) -> float:
    """The makespan of the same calls, in the same order, on an ideal machine of that width."""
    slots = [0.0] * WIDTH
    for latency in latencies:
        heapq.heapreplace(slots, slots[0] + latency)
    return max(slots)


async def wall_clock() -> list[Figure]:
    """QUA-2: 8 types of 60 units, cold cache, log-normal latencies, width 32; every unit has to be run.

    Medians over five draws: even an ideal scheduler that does not know the latencies lies 1.03 to 1.09 times above
    the lower bound at sigma 0.55, at any scale, by the luck of the last arms.
    """
    spec = round_of(types=8, length=60, options=RoundOptions(concurrency=WIDTH))
    await timed(MemoryInference(), spec)
    walls, bounds, ideals, runs = [], [], [], []
    for seed in SEEDS:
        run = MemoryInference(Latencies(seed, median_seconds=0.1, sigma=0.55))
        walls.append((await timed(run, spec))[0])
        bounds.append(max(sum(run.seconds) / WIDTH, max(run.seconds)))
        ideals.append(greedy(run.seconds))
        runs.append(run)
    serial = await asyncio.gather(*(serial_blocks(run, run.pairs()) for run in runs))
    return [
        at_most("makespan / lower bound", ratios(walls, bounds), "x", 1.05),
        at_most("makespan / ideal in this order", ratios(walls, ideals), "x", 1.02),
        at_least("serial blocks / makespan", ratios(serial, walls), "x", 6),
    ]


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Pair by pair."""
    return [above / below for above, below in zip(numerators, denominators, strict=True)]


async def own_cost() -> list[Figure]:
    """QUA-2: CPU of the gate's process an arm, alone and with one gRPC call an arm to a process of its own."""
    spec = round_of(types=8, length=60, options=RoundOptions(concurrency=WIDTH))
    arms = 2 * 8 * 60
    alone = [(await timed(MemoryInference(), spec))[1] / arms * 1e3 for _ in range(7)]
    with agent_process() as address:
        async with open_channel(address, ClientCredentials()) as channel:
            inference = GrpcInference(channel)
            await timed(inference, spec)
            remote = [(await timed(inference, spec))[1] / arms * 1e3 for _ in range(7)]
    return [at_most("own CPU an arm", alone, "ms", 0.2), shown("CPU an arm with its gRPC call", remote, "ms")]


async def pending_memory() -> list[Figure]:
    """QUA-2: resident memory that 100,000 pending arms add, their ladder included."""
    gc.collect()
    before = resident_bytes()
    spec = round_of(types=1, length=50_000, options=RoundOptions(concurrency=WIDTH))
    held = asyncio.Event()
    running = asyncio.create_task(ValidateSkills(Held(held), MemoryStore(spec)).run(spec, lambda event: None))
    await asyncio.sleep(2)
    added = (resident_bytes() - before) / MIB
    running.cancel()
    await asyncio.wait({running})
    return [at_most("100,000 pending arms", added, "MiB", 100)]


class Held:
    """An `Inference` that answers nothing, so that everything stays pending."""

    def __init__(self, gate: asyncio.Event) -> None:
        self._gate = gate

    async def answer(self, call: ArmCall) -> ArmAnswers:
        """Wait for ever."""
        await self._gate.wait()
        raise AssertionError("never released")


def resident_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def consume(length: int) -> float:
    """CPU seconds a unit to consume a ladder of that many, every unit a flip, until nothing can be reached any more."""
    rng = random.Random(3)
    flips = ((ArmResult.WRONG, ArmResult.RIGHT), (ArmResult.RIGHT, ArmResult.WRONG))
    units, outcomes = [f"u{i}" for i in range(length)], [rng.choice(flips) for _ in range(length)]
    prefix = Prefix("t", units, NEVER_STOPS)
    started = time.process_time()
    for unit_id, (base, cand) in zip(units, outcomes, strict=True):
        prefix.resolve(unit_id, Arm.BASE, base)
        prefix.resolve(unit_id, Arm.CAND, cand)
    return (time.process_time() - started) / prefix.position


def decide(length: int) -> float:
    """CPU seconds a flip for the evidence and the exits alone."""
    evidence, rule = Evidence(NEVER_STOPS.mixture), ExitRule(NEVER_STOPS)
    started = time.process_time()
    for used in range(length):
        log_e = evidence.win() if used % 2 else evidence.loss()
        rule.decide(log_e, evidence.wins, evidence.losses, used + 1, length - used - 1)
    return (time.process_time() - started) / length


def statistics_figures() -> list[Figure]:
    """QUA-4."""
    decisions = [decide(100_000) * 1e6 for _ in range(3)]
    ladders = [consume(100_000) * 100_000 for _ in range(3)]
    started = time.perf_counter()
    simulate(FlipRates(0.2, 0.1), 60, 20_000, 1, GateParameters())
    simulated = time.perf_counter() - started
    return [
        at_most("one decision in consumption", decisions, "us", 5),
        at_most("a ladder of 100,000 units", ladders, "s", 1),
        at_most("20,000 gates of 60 units", simulated, "s", 5),
    ]


async def scale() -> tuple[list[Figure], Mapping[str, Mapping[int, float]]]:
    """QUA-6: microseconds a unit against the number of units, for consumption and for whole rounds."""
    sizes = (100, 1_000, 10_000, 100_000)
    consumption = {size: min(consume(size) for _ in range(3)) * 1e6 for size in sizes}
    rounds = {}
    for size in sizes:
        spec = round_of(types=1, length=size, options=RoundOptions(concurrency=WIDTH), parameters=NEVER_STOPS)
        smallest_confirmed_gain(size, NEVER_STOPS)  # once a length and set of parameters, not once a unit
        rounds[size] = (await timed(MemoryInference(), spec))[1] / size * 1e6
    figures = [
        at_most(f"{name}: cost a unit, 100,000 / 1,000", series[100_000] / series[1_000], "x", 1.5)
        for name, series in (("consumption", consumption), ("round", rounds))
    ]
    return figures, {"consumption": consumption, "round": rounds}


def plot(series: Mapping[str, Mapping[int, float]], path: Path) -> None:
    """Time a unit against size, as an SVG."""
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        return
    canvas = Canvas(figsize=(6, 4))
    axes = canvas.add_subplot()
    for name, points in series.items():
        axes.plot(list(points), list(points.values()), marker="o", label=name)
    axes.set(xscale="log", xlabel="units", ylabel="microseconds a unit", title="The gate's cost a unit", ylim=(0, None))
    axes.legend()
    canvas.savefig(path)


def main() -> None:
    """Measure, print, write."""
    figures, series = uvloop.run(measure())
    print(table(figures))
    write("gate", __doc__ or "", figures, {"microseconds_a_unit": series})
    plot(series, RESULTS / "gate-scale.svg")


async def measure() -> tuple[list[Figure], Mapping[str, Mapping[int, float]]]:
    """Everything, one after the other."""
    figures = [*await wall_clock(), *await own_cost(), *await pending_memory(), *statistics_figures()]
    scale_figures, series = await scale()
    return [*figures, *scale_figures], series


if __name__ == "__main__":
    main()
