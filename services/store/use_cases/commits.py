"""Clearing and committing steps and epoch ends (STO-7, STO-8).

Each is one transaction with a key of its own, so that a repeat changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from services.store.domain.errors import InvalidRequest, StaleParent
from services.store.domain.estimates import observed
from services.store.domain.manifest import BestEntry, Manifest, parse_manifest, with_best, with_current
from services.store.domain.names import row_key, run_name
from services.store.domain.rows import checked_row, checked_rows
from services.store.domain.step_keys import gate_run_prefix, rollout_run_id
from services.store.domain.tables import STEP_DECISIONS
from services.store.use_cases.manifests import ManifestProjection, read_manifest, save_manifest
from services.store.use_cases.ports import Clock, Folder, LedgerFolders, LedgerReader, LedgerTransaction, Query, Row
from services.store.use_cases.publish import VersionChange, publish, version_row
from services.store.use_cases.training_records import put_holdout_evals

_ACCEPTED = "accepted"
_STEP = "step"
_EPOCH = "epoch"
# An epoch has one end, whatever step number its records are kept under.
_NO_STEP = 0


@dataclass(frozen=True, slots=True)
class Cleared:
    """How many rows ClearStep removed, or that the step was committed already and nothing was."""

    prediction_count: int
    trace_count: int
    decision_count: int
    already_committed: bool


@dataclass(frozen=True, slots=True)
class StepCommit:
    """All that a finished step decided; rows already carry run, epoch and step."""

    run_id: str
    epoch: int
    step: int
    decisions: Mapping[str, Sequence[Row]]
    changes: Sequence[VersionChange]
    checkpoint: Row


@dataclass(frozen=True, slots=True)
class EpochCommit:
    """All that an epoch's end decided; rows already carry the run."""

    run_id: str
    epoch: int
    dual_metrics: Sequence[Row]
    holdout_evals: Sequence[Row]
    holdout_lines: Sequence[Row]
    observations: Mapping[str, bool]
    changes: Sequence[VersionChange]
    best: Mapping[str, BestEntry]
    checkpoint: Row
    evolution_records: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit was answered, the first time and every time after."""

    versions: Sequence[Row]
    manifest: Manifest
    already_committed: bool


class Commits:
    """The ledger of all workspaces."""

    def __init__(self, workspaces: LedgerFolders, projection: ManifestProjection, clock: Clock) -> None:
        self._workspaces = workspaces
        self._projection = projection
        self._clock = clock

    async def clear_step(self, workspace: str, run_id: str, epoch: int, step: int) -> Cleared:
        """Remove exactly what a re-run of an uncommitted step will write; a committed step is left as it is."""
        _check_place(run_id, epoch, step)
        folder = await self._workspaces.open(workspace)
        return await folder.ledger.write(lambda transaction: _clear_step(transaction, run_id, epoch, step))

    async def commit_step(self, workspace: str, commit: StepCommit) -> Committed:
        """Commit a step; a repeat returns the first answer. Raises InvalidRequest, NotFound, StaleParent."""
        _check_place(commit.run_id, commit.epoch, commit.step)
        for table, rows in commit.decisions.items():
            checked_rows(table, rows, table)
        checkpoint = self._checked_checkpoint(commit.run_id, commit.checkpoint)
        key = {"run_id": commit.run_id, "scope": _STEP, "epoch": commit.epoch, "step": commit.step}

        def write(transaction: LedgerTransaction, files: Folder) -> Committed:
            manifest, versions = self._publish(transaction, files, commit.changes)
            for table, rows in _naming_versions(commit.decisions, commit.changes, versions).items():
                transaction.upsert(table, rows)
            return self._settle(transaction, key, manifest, versions, checkpoint)

        return await self._once(workspace, key, write)

    async def commit_epoch(self, workspace: str, commit: EpochCommit) -> Committed:
        """Commit an epoch's end; a repeat returns the first answer. Raises InvalidRequest, NotFound, StaleParent."""
        _check_place(commit.run_id, commit.epoch, _NO_STEP)
        for table, rows in (
            ("dual_metric", commit.dual_metrics),
            ("holdout_eval", commit.holdout_evals),
            ("holdout_lines", commit.holdout_lines),
            ("evolution_records", commit.evolution_records),
        ):
            checked_rows(table, rows, table)
        for unit_id in commit.observations:
            row_key(unit_id, "observations.unit_id")
        checkpoint = self._checked_checkpoint(commit.run_id, commit.checkpoint)
        key = {"run_id": commit.run_id, "scope": _EPOCH, "epoch": commit.epoch, "step": _NO_STEP}

        def write(transaction: LedgerTransaction, files: Folder) -> Committed:
            manifest, versions = self._publish(transaction, files, commit.changes)
            manifest = with_best(manifest, commit.best)
            transaction.upsert("dual_metric", commit.dual_metrics)
            put_holdout_evals(transaction, commit.holdout_evals)
            transaction.upsert("holdout_lines", commit.holdout_lines)
            _observe(transaction, commit.run_id, commit.epoch, commit.observations)
            records = {"evolution_records": commit.evolution_records}
            for table, rows in _naming_versions(records, commit.changes, versions).items():
                transaction.upsert(table, rows)
            return self._settle(transaction, key, manifest, versions, checkpoint)

        return await self._once(workspace, key, write)

    def _checked_checkpoint(self, run_id: str, checkpoint: Row) -> Row:
        checked_row("checkpoints", checkpoint, "checkpoint")
        if checkpoint["run_id"] != run_id:
            raise InvalidRequest("the checkpoint belongs to another run", field="checkpoint.run_id")
        return {**checkpoint, "committed_time": self._clock()}

    async def _once(
        self, workspace: str, key: Row, write: Callable[[LedgerTransaction, Folder], Committed]
    ) -> Committed:
        folder = await self._workspaces.open(workspace)

        def first_or_repeat(transaction: LedgerTransaction) -> Committed:
            return _first_answer(transaction, key) or write(transaction, folder.files)

        committed = await folder.ledger.write(first_or_repeat)
        await self._projection.refresh(folder)
        return committed

    def _publish(
        self, transaction: LedgerTransaction, files: Folder, changes: Sequence[VersionChange]
    ) -> tuple[Manifest, list[Row]]:
        """Publish the changes one after the other, each on top of the one before it."""
        manifest = read_manifest(transaction)
        versions = []
        for at, change in enumerate(changes):
            current = manifest.current.get(change.kind, "")
            if change.parent and change.parent != current:
                raise StaleParent(f"changes[{at}].parent", change.parent, current)
            row, _ = publish(transaction, files, replace(change, parent=current), self._clock())
            manifest = with_current(manifest, {change.kind: row["version"]})
            versions.append(row)
        return manifest, versions

    def _settle(
        self, transaction: LedgerTransaction, key: Row, manifest: Manifest, versions: Sequence[Row], checkpoint: Row
    ) -> Committed:
        save_manifest(transaction, manifest)
        transaction.upsert("checkpoints", [checkpoint])
        answer = {
            "versions": [f"{row['kind']}/{row['version']}" for row in versions],
            "manifest": manifest.document(),
            "committed_time": checkpoint["committed_time"],
        }
        transaction.upsert("commits", [{**key, **answer}])
        return Committed(versions, manifest, already_committed=False)


def _first_answer(reader: LedgerReader, key: Row) -> Committed | None:
    row = reader.get("commits", key)
    if row is None:
        return None
    names = [name.split("/", 1) for name in row["versions"]]
    versions = [version_row(reader, kind, version, "changes") for kind, version in names]
    return Committed(versions, parse_manifest(row["manifest"]), already_committed=True)


def _clear_step(transaction: LedgerTransaction, run_id: str, epoch: int, step: int) -> Cleared:
    if transaction.get("commits", {"run_id": run_id, "scope": _STEP, "epoch": epoch, "step": step}) is not None:
        return Cleared(0, 0, 0, already_committed=True)
    rollout, gates = rollout_run_id(run_id, epoch, step), gate_run_prefix(run_id, epoch, step)
    predictions, traces = (
        transaction.delete(Query(table, equal={"run_id": rollout}))
        + transaction.delete(Query(table, starting_with={"run_id": gates}))
        for table in ("predictions", "traces")
    )
    place = {"run_id": run_id, "epoch": epoch, "step": step}
    decisions = sum(transaction.delete(Query(table, equal=place)) for table in STEP_DECISIONS)
    return Cleared(predictions, traces, decisions, already_committed=False)


def _naming_versions(
    decisions: Mapping[str, Sequence[Row]], changes: Sequence[VersionChange], versions: Sequence[Row]
) -> dict[str, Sequence[Row]]:
    """Set the version each accepted record and report published: numbers are given here, callers only guess them."""
    by_target = {
        target: version["version"]
        for change, version in zip(changes, versions, strict=True)
        for target in change.overrides
    }
    by_type = {
        row["task_type"]: by_target[row["target"]]
        for row in decisions.get("evolution_records", ())
        if row["status"] == _ACCEPTED and row["target"] in by_target
    }
    named = {"evolution_records": (by_target, "target", _ACCEPTED), "step_reports": (by_type, "task_type", None)}
    return {
        table: [_named(row, *named[table]) for row in rows] if table in named else rows
        for table, rows in decisions.items()
    }


def _named(row: Row, published: Mapping[str, str], by: str, status: str | None) -> Row:
    if row[by] not in published or (status is not None and row["status"] != status):
        return row
    return {**row, "accepted_version": published[row[by]]}


def _observe(transaction: LedgerTransaction, run_id: str, epoch: int, observations: Mapping[str, bool]) -> None:
    known = {row["unit_id"]: row for row in transaction.find(Query("gate_pools", equal={"run_id": run_id}))}
    rows = []
    for unit_id, correct in observations.items():
        estimate, count, last = observed(known.get(unit_id), correct, epoch)
        rows.append(
            {"run_id": run_id, "unit_id": unit_id, "estimate": estimate, "observation_count": count, "last_epoch": last}
        )
    transaction.upsert("gate_pools", rows)


def _check_place(run_id: str, epoch: int, step: int) -> None:
    run_name(run_id, "run_id")
    if epoch < -1:
        raise InvalidRequest("epoch is below -1", field="epoch")
    if step < 0:
        raise InvalidRequest("step is negative", field="step")
