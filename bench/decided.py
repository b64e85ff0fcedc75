"""What a training decided, read from its data root, and how two data roots differ.

Left out is only what time, load or the order of arrival decide: times and durations, how far a gate looked ahead
(`launched` and the answers that were only launched), cache hits, requests in flight, the endpoint's error rate.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Key = tuple[Any, ...]

KEYS: Mapping[str, tuple[str, ...]] = {
    "manifest": ("name",),
    "versions": ("kind", "number"),
    "runs": ("run_id",),
    "predictions": ("run_id", "question_id"),
    "traces": ("run_id", "question_id", "step"),
    "gate_evidence": ("run_id", "epoch", "step", "task_type", "ladder_rank"),
    "quadrant_pairs": ("run_id", "epoch", "step", "task_type", "unit_id"),
    "step_reports": ("run_id", "epoch", "step", "task_type"),
    "evolution_records": ("run_id", "epoch", "step", "target"),
    "question_metrics": ("run_id", "question_id"),
    "span_evaluations": ("run_id", "question_id", "step"),
    "diagnosis_traces": ("run_id", "question_id", "stage"),
    "baseline_diagnosis": ("fingerprint",),
    "baseline_cache": ("task_type", "skill_sha256", "prompts_version", "unit_id"),
    "dual_metric": ("run_id", "epoch", "version_kind", "pool"),
    "holdout_eval": ("run_id", "skills_version", "prompts_version"),
    "holdout_lines": ("run_id", "epoch", "line"),
    "gate_pools": ("run_id", "unit_id"),
    "checkpoints": ("run_id",),
    "commits": ("run_id", "scope", "epoch", "step"),
}
_LEFT_OUT: Mapping[str, frozenset[str]] = {
    "runs": frozenset({"git_sha", "status_detail"}),
    "predictions": frozenset({"cache_hits"}),
    "step_reports": frozenset({"launched", "cache_hits", "peak_in_flight", "endpoint_error_rate"}),
    "baseline_cache": frozenset({"run_id"}),
}
_PARTLY = frozenset({"predictions", "traces", "baseline_cache"})
"""Tables with rows that only one of two runs may have: answers of a gate beyond what it consumed."""


def decided(data: Path) -> dict[str, dict[Key, Row]]:
    """Rows by key, for each table of each workspace and seed of a data root whose store is stopped."""
    found: dict[str, dict[Key, Row]] = {}
    for database in sorted([*data.glob("workspaces/*/harness.db"), *data.glob("seeds/*/baseline.db")]):
        place = database.parent.relative_to(data)
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            for table, key in KEYS.items():
                found[f"{place}/{table}"] = _rows(connection, table, key)
        texts = sorted([*database.parent.glob("*/v*/*.md"), *database.parent.glob("*.json")])
        found[f"{place}/files"] = {(str(each.relative_to(data)),): {"text": _text(each)} for each in texts}
    return found


def differences(undisturbed: Path, disturbed: Path) -> list[str]:
    """One line for each row that is missing, too many or other than in the undisturbed run; empty when all agree."""
    left, right = decided(undisturbed), decided(disturbed)
    lines = [f"{name}: only in one of the two data roots" for name in sorted(left.keys() ^ right.keys())]
    for name in sorted(left.keys() & right.keys()):
        partly = name.rpartition("/")[2] in _PARTLY
        lines += [f"{name} {line}" for line in _compared(left[name], right[name], partly=partly)]
    return lines


def faults(data: Path) -> list[str]:
    """What a stopped data root must not hold: unfinished files, folders never committed, evidence without answers."""
    lines = [f"{path.relative_to(data)}: unfinished work" for path in data.rglob(".tmp-*")]
    for database in sorted(data.glob("workspaces/*/harness.db")):
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            rows = {f"{kind}/{version}" for kind, version in connection.execute("SELECT kind, version FROM versions")}
            folders = {
                f"{path.parent.name}/{path.name}" for kind in ("skills", "prompts")
                for path in (database.parent / kind).glob("*")
            }  # fmt: skip
            lines += [f"{database.parent.name}: {name} without its row or folder" for name in sorted(rows ^ folders)]
            lines += [f"{database.parent.name}: {line}" for line in _unanswered(connection, database.parent)]
    return lines


def _unanswered(connection: sqlite3.Connection, folder: Path) -> Iterable[str]:
    """Counted units whose candidate's answers are not there, or say something else than the evidence."""
    pools = folder / "pools.json"
    units = (
        {unit["unit_id"]: unit["question_ids"] for unit in json.loads(_text(pools))["units"]} if pools.exists() else {}
    )
    given_by = connection.execute("SELECT run_id, question_id, correct FROM predictions")
    answers = {(run, question): bool(right) for run, question, right in given_by}
    query = "SELECT run_id, epoch, step, task_type, unit_id, cand_correct FROM gate_evidence"
    for run, epoch, step, task_type, unit, right in connection.execute(query):
        arm = f"{run}_e{epoch}_s{step}_gate_{'-'.join(task_type.lower().split())}_cand"
        given = [answers.get((arm, question)) for question in units[unit]]
        if None in given or all(given) != bool(right):
            yield f"{arm} {unit}: evidence says {bool(right)}, the answers say {given}"


def _rows(connection: sqlite3.Connection, table: str, key: tuple[str, ...]) -> dict[Key, Row]:
    rows: dict[Key, Row] = {}
    for found in connection.execute(f"SELECT * FROM {table}"):
        row = dict(found)
        if _is_beyond(table, row):
            continue
        rows[tuple(row[name] for name in key)] = {
            name: _timeless(value)
            for name, value in row.items()
            if name not in _LEFT_OUT.get(table, ()) and not name.endswith(("_time", "_duration"))
        }
    return rows


def _is_beyond(table: str, row: Row) -> bool:
    """Whether a row of a base arm: those come from the cache after a round that broke off."""
    return table in {"predictions", "traces"} and "_gate_" in row["run_id"] and row["run_id"].endswith("_base")


def _compared(left: Mapping[Key, Row], right: Mapping[Key, Row], *, partly: bool) -> Iterable[str]:
    for key in sorted(left.keys() | right.keys(), key=repr):
        if key not in left or key not in right:
            if not (partly and (len(key) == 4 or "_gate_" in str(key[0]))):
                yield f"{key}: {'missing' if key in left else 'too many'}"
            continue
        for name in left[key]:
            if left[key][name] != right[key].get(name):
                yield f"{key}: {name} is {_short(right[key].get(name))}, undisturbed {_short(left[key][name])}"


def _timeless(value: Any) -> Any:
    """A JSON text or value without times and etags, which say when and not what."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return _timeless(json.loads(value))
        except ValueError:
            return value
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key != "etag" and not key.endswith(("_at", "_time"))}
        return {key: _timeless(each) for key, each in kept.items()}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def _text(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return json.dumps(_timeless(text), sort_keys=True) if path.suffix == ".json" else text


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:160]}... ({len(text)} characters)"
