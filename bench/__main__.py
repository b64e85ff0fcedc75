"""Runs every benchmark, one after the other: `make bench`, or `python -m bench store gate` for some of them."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = ("store", "gate", "inference")


def main(wanted: list[str]) -> int:
    """Runs each as a process of its own, so that none leaves memory to the next; returns 1 if one fails."""
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        sys.stderr.write(f"no benchmark called {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}\n")
        return 2
    failed = [name for name in wanted or BENCHMARKS if not _succeeds(name)]
    if failed:
        sys.stderr.write(f"failed: {', '.join(failed)}\n")
    return 1 if failed else 0


def _succeeds(name: str) -> bool:
    print(f"== {name}", flush=True)
    return subprocess.run([sys.executable, "-m", f"bench.{name}"]).returncode == 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
