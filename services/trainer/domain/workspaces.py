"""What a workspace is: its manifest, the seeds it can be made from, the copies made of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class CurrentVersions:
    """What a workspace uses now."""

    videos: str = ""
    questions: str = ""
    skills: str = ""
    prompts: str = ""


@dataclass(frozen=True, slots=True)
class BestEntry:
    """The best version pair by one measure; `epoch` is -1 for the initial evaluation."""

    skills: str
    prompts: str
    score: float
    epoch: int
    run_id: str


@dataclass(frozen=True, slots=True)
class Best:
    """The best pairs by the share of units right and by the mixed score."""

    hard: BestEntry | None = None
    mixed: BestEntry | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a workspace."""

    name: str
    current: CurrentVersions
    best: Best
    pools_sha256: str
    baseline_run_id: str
    seed: str
    etag: str
    created_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """A frozen starting point from which workspaces are made."""

    name: str
    dataset: str
    baseline_run_id: str
    prediction_count: int
    pools_sha256: str
    skills_sha256: str
    prompts_sha256: str
    created_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class BackupCopy:
    """A consistent copy of a workspace."""

    path: str
    size_bytes: int
