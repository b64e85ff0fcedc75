"""No file of the project names the place where it was made: a package registry's host or a path of one machine.

Usage: python checks/no_place_names.py [ROOT]
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# Each name is broken up by a class of one letter, so that this file doesn't find itself.
_PLACES = re.compile(
    r"p[y]pi\.org|f[i]les\.pythonhosted|t[e]st\.pypi|r[e]gistry\.npmjs|r[e]gistry\.yarnpkg|d[e]b\.debian\.org"
    r"|s[e]curity\.debian|s[n]apshot\.debian|p[r]oxy\.golang|r[e]gistry-1\.docker|d[o]cker\.io/|q[u]ay\.io|g[h]cr\.io"
    r"|n[v]cr\.io|(?<![\w.])g[c]r\.io|m[c]r\.microsoft"
    r"|(?<![\w.-])/w[o]rk/|/f[a]rm/|/h[o]me/[a-z]|/r[o]ot/|/o[p]t/wheels|/o[p]t/pypi|/t[m]p/team|/U[s]ers/[A-Za-z]"
)


def faults(root: Path) -> list[str]:
    """One line for each place that names one: file, line number and the name."""
    return [fault for path in _text_files(root) for fault in _faults_of(root, path)]


def _text_files(root: Path) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := root / name).is_file()]


def _faults_of(root: Path, path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (UnicodeDecodeError, FileNotFoundError):
        return []
    return [
        f"{path.relative_to(root)}:{number}: {match.group()}"
        for number, line in enumerate(lines, 1)
        for match in _PLACES.finditer(line)
    ]


if __name__ == "__main__":
    named = faults(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
    sys.stderr.writelines(f"{line}\n" for line in named)
    raise SystemExit(1 if named else 0)
