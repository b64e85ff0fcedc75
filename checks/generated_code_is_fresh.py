"""The committed package under gen/ is what the protos give today.

Usage: python checks/generated_code_is_fresh.py
"""

from __future__ import annotations

import filecmp
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def differences(committed: Path, fresh: Path) -> list[str]:
    """The files that differ or stand on one side only, relative to both folders."""
    names = {_relative(path, root) for root in (committed, fresh) for path in _files(root)}
    return sorted(name for name in names if not _same(committed / name, fresh / name))


def _files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and path.suffix in {".py", ".pyi", ".typed"}]


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _same(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)


def main() -> int:
    """Regenerates into a temporary folder and returns 1 when anything differs."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, ROOT / "protos" / "generate.py", folder], check=True)
        stale = differences(ROOT / "gen" / "videotree", Path(folder) / "videotree")
    for name in stale:
        sys.stderr.write(f"gen/videotree/{name} is stale; run `make proto` and commit gen/\n")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
