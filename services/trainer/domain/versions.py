"""Versions of skills and prompts, and the names that the store will give to the next ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class VersionFile:
    """One file of a version; the text is empty in listings."""

    name: str
    text: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Version:
    """A published version; `kind` is skills or prompts."""

    kind: str
    version: str
    parent: str
    source: str
    trigger_run: str
    description: str
    files: tuple[VersionFile, ...] = ()
    sha256: str = ""
    created_time: datetime | None = None

    @property
    def texts(self) -> dict[str, str]:
        """File name to text."""
        return {each.name: each.text for each in self.files}


@dataclass(frozen=True, slots=True)
class VersionChange:
    """What to publish; an empty parent means the version published just before, or the current one."""

    kind: str
    overrides: Mapping[str, str]
    source: str
    trigger_run: str
    description: str
    parent: str = ""
    removed: tuple[str, ...] = ()


def upcoming_versions(existing: Iterable[str], count: int) -> list[str]:
    """Names of the next `count` versions after `existing`: v1, v2, ... are numbered without gaps at the end."""
    last = max((int(name.removeprefix("v")) for name in existing), default=0)
    return [f"v{last + offset}" for offset in range(1, count + 1)]
