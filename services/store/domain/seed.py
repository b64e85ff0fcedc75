"""What a seed says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seed:
    """The content of `seed.json`; `pools_sha256` is empty when the seed has no pools, times are ISO 8601 UTC."""

    name: str
    created_time: str
    dataset: str
    baseline_run_id: str
    prediction_count: int
    pools_sha256: str
    skills_sha256: str
    prompts_sha256: str


def parse_seed(document: Mapping[str, object]) -> Seed:
    """Return the seed; raises TypeError for a document that is none."""
    return Seed(**document)  # type: ignore[arg-type]  # the document is our own
