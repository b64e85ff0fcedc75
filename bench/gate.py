"""The gate's figures: wall clock (QUA-2), statistics (QUA-4) and scale (QUA-6).

    python -m bench.gate

Prints a table and writes `bench/results/gate.json` and, when matplotlib is there, `bench/results/gate-scale.svg`.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import json
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from bench.gate_neighbours import Latencies, MemoryInference, MemoryStore, agent_process, round_of
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

RESULTS = Path(__file__).parent / "results"
NEVER_STOPS = GateParameters(e_confirm=1e300, lambda_dir=-1e9, delta_min=0.0, w_net_min=0, e_provisional=1 + 1e-9)
WIDTH = 32
SEEDS = range(1, 6)
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure and the bar it is held against."""

    name: str
    value: float
    unit: str
    bar: str
    meets: bool


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
    to_bound = statistics.median(wall / bound for wall, bound in zip(walls, bounds, strict=True))
    to_ideal = statistics.median(wall / ideal for wall, ideal in zip(walls, ideals, strict=True))
    speed = statistics.median(slow / wall for slow, wall in zip(serial, walls, strict=True))
    return [
        Figure("makespan / lower bound", to_bound, "x", "<= 1.05", to_bound <= 1.05),
        Figure("makespan / ideal in this order", to_ideal, "x", "<= 1.02", to_ideal <= 1.02),
        Figure("serial blocks / makespan", speed, "x", ">= 6", speed >= 6),
    ]


async def own_cost() -> list[Figure]:
    """QUA-2: CPU of the gate's process an arm, alone and with one gRPC call an arm to a process of its own."""
    spec = round_of(types=8, length=60, options=RoundOptions(concurrency=WIDTH))
    arms = 2 * 8 * 60
    alone = statistics.median([(await timed(MemoryInference(), spec))[1] for _ in range(7)]) / arms
    with agent_process() as address:
        async with open_channel(address, ClientCredentials()) as channel:
            inference = GrpcInference(channel)
            await timed(inference, spec)
            remote = statistics.median([(await timed(inference, spec))[1] for _ in range(7)]) / arms
    return [
        Figure("own CPU an arm", alone * 1e3, "ms", "<= 0.2", alone <= 2e-4),
        Figure("CPU an arm with its gRPC call", remote * 1e3, "ms", "(shown)", True),
    ]


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
    return [Figure("100,000 pending arms", added, "MiB", "<= 100", added <= 100)]


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
    decision = min(decide(100_000) for _ in range(3))
    unit = min(consume(100_000) for _ in range(3))
    started = time.perf_counter()
    simulate(FlipRates(0.2, 0.1), 60, 20_000, 1, GateParameters())
    simulated = time.perf_counter() - started
    return [
        Figure("one decision in consumption", decision * 1e6, "us", "<= 5", decision <= 5e-6),
        Figure("a ladder of 100,000 units", unit * 100_000, "s", "<= 1", unit <= 1e-5),
        Figure("20,000 gates of 60 units", simulated, "s", "<= 5", simulated <= 5),
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
        Figure(
            f"{name}: cost a unit, 100,000 / 1,000",
            series[100_000] / series[1_000],
            "x",
            "<= 1.5",
            series[100_000] <= 1.5 * series[1_000],
        )
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
    RESULTS.mkdir(exist_ok=True)
    rows = [asdict(figure) for figure in figures]
    (RESULTS / "gate.json").write_text(json.dumps({"figures": rows, "microseconds_a_unit": series}, indent=2) + "\n")
    plot(series, RESULTS / "gate-scale.svg")
    for figure in figures:
        verdict = "ok" if figure.meets else "MISSED"
        print(f"{figure.name:42} {figure.value:10.3f} {figure.unit:4} {figure.bar:10} {verdict}")


async def measure() -> tuple[list[Figure], Mapping[str, Mapping[int, float]]]:
    """Everything, one after the other."""
    figures = [*await wall_clock(), *await own_cost(), *await pending_memory(), *statistics_figures()]
    scale_figures, series = await scale()
    return [*figures, *scale_figures], series


if __name__ == "__main__":
    main()
