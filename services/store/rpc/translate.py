"""Between the store's messages and its domain values, where names differ or values nest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from videotree.store.v1 import (
    pool_pb2,
    question_pb2,
    seed_pb2,
    version_pb2,
    video_pb2,
    workspace_pb2,
)

from services.questions import Question
from services.store.domain.frozen_pools import Pools, PoolUnit
from services.store.domain.manifest import BestEntry, Manifest
from services.store.domain.seed import Seed
from services.store.rpc.row_codec import enum_number, enum_text, timestamp
from services.store.use_cases.library import Video
from services.store.use_cases.publish import VersionChange

_KIND = version_pb2.VersionKind.DESCRIPTOR
_SOURCE = version_pb2.VersionSource.DESCRIPTOR
_POOL = pool_pb2.Pool.DESCRIPTOR


def kind_text(kind: int, field: str = "kind") -> str:
    """Return `skills` or `prompts`; raises InvalidRequest if it is not set."""
    return enum_text(_KIND, kind, field)


def question_value(message: question_pb2.Question) -> Question:
    """Return the question of a message; an empty unit id is the question's own."""
    return Question(
        question_id=message.question_id,
        video_id=message.video_id,
        task_type=message.task_type,
        text=message.text,
        options=tuple(message.options),
        answer=message.answer,
        unit_id=message.unit_id or message.question_id,
    )


def question_message(question: Question) -> question_pb2.Question:
    """Return the message of a question."""
    return question_pb2.Question(
        question_id=question.question_id,
        video_id=question.video_id,
        task_type=question.task_type,
        text=question.text,
        options=question.options,
        answer=question.answer,
        unit_id=question.unit_id,
    )


def video_message(video: Video) -> video_pb2.Video:
    """Return the message of a video."""
    return video_pb2.Video(
        video_id=video.video_id,
        tree_sha256=video.tree_sha256,
        node_count=video.node_count,
        frame_count=video.frame_count,
    )


def change_value(message: version_pb2.VersionChange, field: str) -> VersionChange:
    """Return what a message asks to publish; raises InvalidRequest for an enum that is not set."""
    return VersionChange(
        kind=kind_text(message.kind, f"{field}.kind"),
        parent=message.parent,
        overrides=dict(message.overrides),
        removed=tuple(message.removed),
        source=enum_text(_SOURCE, message.source, f"{field}.source"),
        trigger_run=message.trigger_run,
        description=message.description,
    )


def change_values(messages: Iterable[version_pb2.VersionChange]) -> list[VersionChange]:
    """Return what each message asks to publish, in order."""
    return [change_value(message, f"changes[{at}]") for at, message in enumerate(messages)]


def version_message(row: Mapping[str, Any], texts: Mapping[str, str] | None = None) -> version_pb2.Version:
    """Return the message of a version's row, with texts where they are given."""
    return version_pb2.Version(
        kind=version_pb2.VersionKind.ValueType(enum_number(_KIND, row["kind"])),
        version=row["version"],
        parent=row["parent"],
        source=version_pb2.VersionSource.ValueType(enum_number(_SOURCE, row["source"])),
        trigger_run=row["trigger_run"],
        description=row["description"],
        created_time=timestamp(row["created_time"]),
        sha256=row["sha256"],
        files=[
            version_pb2.VersionFile(name=name, text=(texts or {}).get(name, ""), sha256=sha256)
            for name, sha256 in sorted(row["file_sha256"].items())
        ],
    )


def manifest_message(manifest: Manifest) -> workspace_pb2.Manifest:
    """Return the message of a manifest, with its etag."""
    return workspace_pb2.Manifest(
        name=manifest.name,
        created_time=timestamp(manifest.created_time),
        current=workspace_pb2.CurrentVersions(**manifest.current),
        best=workspace_pb2.Best(**{kind: _best_message(entry) for kind, entry in manifest.best.items()}),
        history=[
            workspace_pb2.HistoryEntry(
                run_id=entry.run_id,
                current=workspace_pb2.CurrentVersions(**entry.current),
                recorded_time=timestamp(entry.recorded_time),
            )
            for entry in manifest.history
        ],
        pools_sha256=manifest.pools_sha256,
        baseline_run_id=manifest.baseline_run_id,
        seed=manifest.seed,
        etag=manifest.etag,
    )


def best_values(message: workspace_pb2.Best) -> dict[str, BestEntry]:
    """Return the entries that are set, by measure."""
    return {
        kind: BestEntry(entry.skills, entry.prompts, entry.score, entry.epoch, entry.run_id)
        for kind, entry in (("hard", message.hard), ("mixed", message.mixed))
        if message.HasField(kind)  # type: ignore[arg-type]  # both names are fields of the message
    }


def pools_value(message: pool_pb2.Pools) -> Pools:
    """Return the split of a message; raises InvalidRequest for a pool that is not set."""
    return Pools(
        baseline_run_id=message.baseline_run_id,
        dataset=message.dataset,
        units=tuple(
            PoolUnit(
                unit_id=unit.unit_id,
                task_type=unit.task_type,
                video_id=unit.video_id,
                question_ids=tuple(unit.question_ids),
                pool=enum_text(_POOL, unit.pool, f"pools.units[{at}].pool"),
            )
            for at, unit in enumerate(message.units)
        ),
    )


def pools_message(pools: Pools, sha256: str) -> pool_pb2.Pools:
    """Return the message of a split."""
    return pool_pb2.Pools(
        baseline_run_id=pools.baseline_run_id,
        dataset=pools.dataset,
        sha256=sha256,
        units=[
            pool_pb2.PoolUnit(
                unit_id=unit.unit_id,
                task_type=unit.task_type,
                video_id=unit.video_id,
                question_ids=unit.question_ids,
                pool=pool_pb2.Pool.ValueType(enum_number(_POOL, unit.pool)),
            )
            for unit in pools.units
        ],
    )


def seed_message(seed: Seed) -> seed_pb2.Seed:
    """Return the message of a seed."""
    return seed_pb2.Seed(
        name=seed.name,
        created_time=timestamp(seed.created_time),
        dataset=seed.dataset,
        baseline_run_id=seed.baseline_run_id,
        prediction_count=seed.prediction_count,
        pools_sha256=seed.pools_sha256,
        skills_sha256=seed.skills_sha256,
        prompts_sha256=seed.prompts_sha256,
    )


def version_messages(rows: Sequence[Mapping[str, Any]]) -> list[version_pb2.Version]:
    """Return the messages of version rows, without texts."""
    return [version_message(row) for row in rows]


def _best_message(entry: BestEntry) -> workspace_pb2.BestEntry:
    return workspace_pb2.BestEntry(
        skills=entry.skills, prompts=entry.prompts, score=entry.score, epoch=entry.epoch, run_id=entry.run_id
    )
