"""Runs benchmarks and shows one table: `make bench`, or `python -m bench store gate` for some of them.

Each runs as a process of its own, so that none leaves memory to the next; a peer or bare loop runs inside the same
process order as what it is compared with. `--quick` shortens every run: it tries the benchmarks, not the machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.record import RESULTS, read, table


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A module of this package, and what makes it short."""

    about: str
    quick: tuple[str, ...] = ("--quick",)
    quick_environment: Mapping[str, str] = field(default_factory=dict)


BENCHMARKS: Mapping[str, Benchmark] = {
    "inference": Benchmark("QUA-1 the governed call beside LiteLLM", ("--seconds", "0.3")),
    "gate": Benchmark("QUA-2, QUA-4 the gate's wall clock and statistics", ()),
    "gate_rules": Benchmark("QUA-4 the gate's rule beside other rules"),
    "store": Benchmark("QUA-3 the store beside a bare SQLite loop", (), {"BENCH_SECONDS": "1"}),
    "start": Benchmark("QUA-5 start, memory, sample training"),
    "scale": Benchmark("QUA-6 cost against size"),
    "faults": Benchmark("QUA-10 faults"),
    "bad_input": Benchmark("QUA-13 bad input"),
    "secrets": Benchmark("QUA-14 secrets and names that lead out"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs each wanted benchmark; 0 when all ran, 1 when one failed, 2 for an unknown name."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = ", ".join(f"{name} ({each.about})" for name, each in BENCHMARKS.items())
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of: {names}; all by default")
    parser.add_argument("--quick", action="store_true", help="short runs")
    parser.add_argument("--show", action="store_true", help="run nothing; show the results that are there")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark called {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    wanted, began = options.names or list(BENCHMARKS), time.monotonic()
    if options.show:
        print(table([figure for name in wanted for figure in read(name)]))
        return 0
    failed = [name for name in wanted if not _succeeds(name, quick=options.quick)]
    _show([name for name in wanted if name not in failed], time.monotonic() - began)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _succeeds(name: str, *, quick: bool) -> bool:
    benchmark = BENCHMARKS[name]
    print(f"\n== {name}: {benchmark.about}", flush=True)
    extra = benchmark.quick if quick else ()
    environment = {**os.environ, **(benchmark.quick_environment if quick else {})}
    return subprocess.run([sys.executable, "-m", f"bench.{name}", *extra], env=environment).returncode == 0


def _show(names: Sequence[str], seconds: float) -> None:
    figures = [figure for name in names for figure in read(name)]
    short = sum(figure.met is False for figure in figures)
    load = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"\n== all, in {seconds / 60:.1f} minutes; {load}; written to {RESULTS.name}/\n{table(figures)}")
    print(f"{sum(figure.met is True for figure in figures)} targets met, {short} short")


if __name__ == "__main__":
    raise SystemExit(main())
