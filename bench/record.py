"""What a benchmark leaves behind: `bench/results/NAME.json`, and the table that shows it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import sqlite3
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
_LIBRARIES = ("grpcio", "protobuf", "uvloop", "aiohttp", "sqlalchemy", "numpy", "redis", "orjson")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value and what it is held against.

    `spread`: least and greatest of the runs whose median `value` is. `reference`: the peer, bound or bare loop that was
    measured beside it, `reference_value` in the same unit, `ratio` as the target means it. `met` is None where there
    is no target.
    """

    what: str
    value: float
    unit: str
    target: str = ""
    met: bool | None = None
    reference: str = ""
    reference_value: float | None = None
    ratio: float | None = None
    spread: tuple[float, float] | None = None


def median_with_spread(values: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The median, and the least and greatest value."""
    return statistics.median(values), (min(values), max(values))


def at_most(what: str, values: float | Sequence[float], unit: str, limit: float) -> Figure:
    """A figure that is good when it is small; of several runs the median counts."""
    value, spread = (values, None) if isinstance(values, int | float) else median_with_spread(values)
    return Figure(what, value, unit, f"<= {limit:g} {unit}".rstrip(), value <= limit, spread=spread)


def at_least(what: str, values: float | Sequence[float], unit: str, limit: float) -> Figure:
    """A figure that is good when it is large; of several runs the median counts."""
    value, spread = (values, None) if isinstance(values, int | float) else median_with_spread(values)
    return Figure(what, value, unit, f">= {limit:g} {unit}".rstrip(), value >= limit, spread=spread)


def shown(what: str, values: float | Sequence[float], unit: str) -> Figure:
    """A figure without a target."""
    value, spread = (values, None) if isinstance(values, int | float) else median_with_spread(values)
    return Figure(what, value, unit, spread=spread)


def write(name: str, method: str, figures: Sequence[Figure], details: Mapping[str, Any] | None = None) -> Path:
    """Writes `bench/results/NAME.json` with machine, versions and date; returns its path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    record = {
        "benchmark": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "method": " ".join(method.split()),
        "figures": [asdict(figure) for figure in figures],
        "details": details or {},
    }
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return path


def read(name: str) -> list[Figure]:
    """The figures of the last run of a benchmark."""
    record = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return [Figure(**figure) for figure in record["figures"]]


def machine() -> dict[str, Any]:
    """The machine as far as figures depend on it; `load_average` is that of the minute before."""
    information = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)$", information.read_text(), re.MULTILINE) if information.exists() else None
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": f"{platform.system()} {platform.release().partition('-')[0]} {platform.machine()}",
        "processor": found.group(1) if found else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "load_average": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Python and the libraries on which the figures rest."""
    found = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, **found}


def table(figures: Sequence[Figure]) -> str:
    """What, figure, reference, ratio, target, met or short."""
    head = ("what", "figure", "reference", "ratio", "target", "")
    rows = [head, *(cells(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def cells(figure: Figure) -> tuple[str, str, str, str, str, str]:
    """A figure's row of the table."""
    met = {True: "met", False: "SHORT", None: ""}[figure.met]
    reference = figure.reference
    if figure.reference_value is not None:
        reference = f"{reference} {_number(figure.reference_value)}".strip()
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    return (figure.what, f"{_number(figure.value)} {figure.unit}".rstrip(), reference, ratio, figure.target, met)


def _number(value: float) -> str:
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
