"""The manifest of a workspace: what is current, what was best, what has run (STO-4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from services.store.domain.errors import InvalidRequest, StaleEtag, UnknownManifestKey
from services.store.domain.fingerprints import canonical_json, sha256_hex
from services.store.domain.names import component, version_name

CURRENT_KEYS = ("videos", "questions", "skills", "prompts")
BEST_KINDS = ("hard", "mixed")


@dataclass(frozen=True, slots=True)
class BestEntry:
    """The version pair that was best by one measure; score in [0, 1], epoch from 0 or -1 for the initial evaluation."""

    skills: str
    prompts: str
    score: float
    epoch: int
    run_id: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A snapshot of `current` when a run was recorded; the time is ISO 8601 UTC."""

    run_id: str
    recorded_time: str
    current: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole manifest; `seed` and `baseline_run_id` are empty where the workspace was made from files."""

    name: str
    created_time: str
    current: Mapping[str, str]
    best: Mapping[str, BestEntry] = field(default_factory=dict)
    history: tuple[HistoryEntry, ...] = ()
    seed: str = ""
    baseline_run_id: str = ""
    pools_sha256: str = ""

    def document(self) -> dict[str, object]:
        """Return the manifest as the JSON object that stands in `manifest.json`."""
        return asdict(self)

    @property
    def etag(self) -> str:
        """A short hash of the whole content: two equal manifests have equal etags."""
        return sha256_hex(canonical_json(self.document()))[:16]


def parse_manifest(document: Mapping[str, object]) -> Manifest:
    """Return the manifest that `document()` wrote."""
    values = dict(document)
    best = {kind: BestEntry(**entry) for kind, entry in _mapping(values["best"]).items()}
    history = tuple(HistoryEntry(**entry) for entry in _sequence(values["history"]))
    return Manifest(**{**values, "best": best, "history": history})  # type: ignore[arg-type]  # the document is our own


def require_etag(manifest: Manifest, etag: str) -> None:
    """Raise StaleEtag unless `etag` is the manifest's own; an absent etag is refused as a bad request."""
    if not etag:
        raise InvalidRequest("an etag is needed: read the manifest first", field="etag")
    if etag != manifest.etag:
        raise StaleEtag(etag, manifest.etag)


def with_current(manifest: Manifest, changes: Mapping[str, str]) -> Manifest:
    """Return the manifest with some of `current` changed; raise UnknownManifestKey for a key it does not have."""
    for key in changes:
        if key not in CURRENT_KEYS:
            raise UnknownManifestKey(f"current has no key {key!r}, only {', '.join(CURRENT_KEYS)}", field="current")
        component(changes[key], "current")
    return replace(manifest, current={**manifest.current, **changes})


def with_best(manifest: Manifest, entries: Mapping[str, BestEntry]) -> Manifest:
    """Return the manifest with some best entries replaced; raise InvalidRequest for one that is out of range."""
    for kind, entry in entries.items():
        if kind not in BEST_KINDS:
            raise InvalidRequest(f"best has no kind {kind!r}, only {', '.join(BEST_KINDS)}", field="best")
        if not (math.isfinite(entry.score) and 0.0 <= entry.score <= 1.0):
            raise InvalidRequest(f"best.{kind}.score {entry.score} is not in [0, 1]", field=f"best.{kind}.score")
        if entry.epoch < -1:
            raise InvalidRequest(f"best.{kind}.epoch {entry.epoch} is below -1", field=f"best.{kind}.epoch")
        version_name(entry.skills, f"best.{kind}.skills")
        version_name(entry.prompts, f"best.{kind}.prompts")
    return replace(manifest, best={**manifest.best, **entries})


def with_run(manifest: Manifest, run_id: str, recorded_time: str) -> Manifest:
    """Return the manifest with a snapshot of `current` for this run; a run that is recorded already changes nothing."""
    if any(entry.run_id == run_id for entry in manifest.history):
        return manifest
    entry = HistoryEntry(run_id, recorded_time, dict(manifest.current))
    return replace(manifest, history=(*manifest.history, entry))


def _mapping(value: object) -> Mapping[str, dict[str, Any]]:
    if not isinstance(value, Mapping):
        raise TypeError(f"expected an object, found {type(value).__name__}")
    return value


def _sequence(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"expected a list, found {type(value).__name__}")
    return list(value)
