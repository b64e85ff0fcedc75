"""Writes the figures of the last results into docs/quality.md: `python -m bench.figures_page`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.record import RESULTS, Figure, cells

PAGE = Path(__file__).resolve().parents[1] / "docs" / "quality.md"
BEGIN = "<!-- figures: written by python -m bench.figures_page -->\n"
END = "<!-- end of figures -->"
ORDER = (
    "inference", "gate", "gate_rules", "store", "start", "scale", "faults", "soak", "kill_anywhere", "torn_writes",
    "bad_input", "secrets",
)  # fmt: skip


def markdown_of(record: dict[str, Any]) -> str:
    """A table with a line that says when, on what machine and how busy it was."""
    machine = record["machine"]
    when = record["date"][:16].replace("T", " ")
    place = f"{machine['cores']} cores ({machine['processor']}), load average {machine['load_average']}"
    lines = [f"### {record['benchmark']}", "", f"{when} UTC, {place}.", ""]
    lines += ["| what | figure | beside | ratio | target | |", "|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(cells(Figure(**figure)))} |" for figure in record["figures"]]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Replaces what stands between the two marks."""
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    files = [RESULTS / f"{name}.json" for name in ORDER]
    tables = [markdown_of(json.loads(path.read_text(encoding="utf-8"))) for path in files if path.exists()]
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(tables) + "\n" + END + tail, encoding="utf-8")


if __name__ == "__main__":
    main()
