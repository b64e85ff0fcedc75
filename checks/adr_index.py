"""docs/adr/README.md lists every decision record, by number and title.

Usage: python checks/adr_index.py [--write]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "adr"
_INTRODUCTION = """\
# Decision records

What was decided that someone could want to undo, why, and what follows from it. One file per decision, named
`NNNN-title.md`; this list is written by `python checks/adr_index.py --write`. Numbers by room: runtime and tooling
0001-0009, store 0010-0019, inference 0020-0029, agent and kernels 0030-0039, gate 0040-0049, evolver 0050-0059,
simulator 0060-0069, trainer 0070-0079, what several rooms share from 0080 on.

A record keeps to: context, decision, consequences, and where it helps what else was considered. One that no longer
holds stays, with the status `superseded by NNNN`.

"""


def index(folder: Path) -> str:
    """The text of the index for the records in `folder`."""
    records = sorted(path for path in folder.glob("*.md") if re.match(r"\d{4}-", path.name))
    return _INTRODUCTION + "".join(f"- {path.name[:4]} [{_title(path)}]({path.name})\n" for path in records)


def _title(path: Path) -> str:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    return re.sub(r"^#\s*(?:ADR[ -]*)?(?:\d{4})?[ :.\-]*", "", first).strip()


def main(arguments: list[str]) -> int:
    """Writes the index with `--write`; otherwise returns 1 when it differs from the records."""
    readme = FOLDER / "README.md"
    fresh = index(FOLDER)
    if arguments == ["--write"]:
        readme.write_text(fresh, encoding="utf-8")
        return 0
    if readme.is_file() and readme.read_text(encoding="utf-8") == fresh:
        return 0
    sys.stderr.write("docs/adr/README.md doesn't list the records; run python checks/adr_index.py --write\n")
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
