"""Extracting a baseline run (STO-11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def first_per_question(rows: Iterable[Mapping[str, Any]], seen: set[str]) -> list[Mapping[str, Any]]:
    """Return the rows whose question was not seen before, in the order given; `seen` grows with them.

    A baseline that was interrupted and repeated may hold several rows of one question; the first is its baseline.
    """
    kept = []
    for row in rows:
        if row["question_id"] not in seen:
            seen.add(row["question_id"])
            kept.append(row)
    return kept
