"""Every relative link and every anchor in the project's Markdown files leads somewhere.

Usage: python checks/docs_links.py [ROOT]
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

_LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_REFERENCE = re.compile(r"^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
_EXTERNAL = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def faults(root: Path) -> list[str]:
    """One line for each link that leads nowhere: file, link and what is missing."""
    return [fault for path in _markdown_files(root) for fault in _faults_of(root, path)]


def _markdown_files(root: Path) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := root / name).is_file()]


def _faults_of(root: Path, path: Path) -> list[str]:
    text = _INLINE_CODE.sub("", _FENCE.sub("", path.read_text(encoding="utf-8")))
    links = [*_LINK.findall(text), *_REFERENCE.findall(text)]
    found = []
    for link in links:
        if _EXTERNAL.match(link):
            continue
        target, _, anchor = unquote(link).partition("#")
        file = path if not target else (root / target.lstrip("/") if target.startswith("/") else path.parent / target)
        if not file.exists():
            found.append(f"{path.relative_to(root)}: {link}: no such file")
        elif anchor and file.suffix == ".md" and anchor.lower() not in _anchors(file.resolve()):
            found.append(f"{path.relative_to(root)}: {link}: no such heading")
    return found


@cache
def _anchors(path: Path) -> frozenset[str]:
    """The anchors that hosting sites make of a file's headings: lower case, hyphens for spaces, no punctuation."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    seen: dict[str, int] = {}
    anchors = set()
    for heading in _HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        anchors.add(slug if count == 0 else f"{slug}-{count}")
    anchors.update(re.findall(r"<a\s+(?:id|name)=\"([^\"]+)\"", text))
    return frozenset(anchors)


if __name__ == "__main__":
    broken = faults(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
    sys.stderr.writelines(f"{line}\n" for line in broken)
    raise SystemExit(1 if broken else 0)
