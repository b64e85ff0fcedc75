"""The protos break no client of an earlier state (buf breaking).

Usage: python checks/protos_are_compatible.py

The earlier state is the last release (newest tag `v*`); before the first release it is main's last commit that isn't
the one checked out, or, on main itself, the checked-out commit (then only what isn't committed yet is compared).
BREAKING_AGAINST names another commit.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUF = Path(sysconfig.get_path("scripts")) / "buf"


def earlier_state() -> str | None:
    """The commit to compare with, or None when there is no commit yet."""
    head = _commit("HEAD")
    named = os.environ.get("BREAKING_AGAINST")
    if named:
        return _commit(named)
    release = _git("describe", "--tags", "--abbrev=0", "--match", "v*")
    if release:
        return _commit(release)
    others = (_commit(name) for name in ("origin/main", "main"))
    return next((commit for commit in others if commit and commit != head), head)


def _commit(name: str) -> str | None:
    return _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")


def _git(*arguments: str) -> str | None:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or None if done.returncode == 0 else None


def main() -> int:
    """Returns buf's exit code; 0 when the earlier state has no protos to compare with."""
    commit = earlier_state()
    if commit is None or not _git("ls-tree", "--name-only", commit, "protos/buf.yaml"):
        sys.stderr.write("no earlier protos to compare with\n")
        return 0
    against = f"{_git('rev-parse', '--path-format=absolute', '--git-common-dir')}#format=git,ref={commit},subdir=protos"
    return subprocess.run([BUF, "breaking", ROOT / "protos", "--against", against], cwd=ROOT).returncode


if __name__ == "__main__":
    raise SystemExit(main())
