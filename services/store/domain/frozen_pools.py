"""The frozen split: its file, its fingerprint, and when it may be replaced (STO-10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from services.store.domain.errors import InvalidRequest, PoolsAlreadyFrozen, PoolsMismatch
from services.store.domain.fingerprints import readable_json, sha256_hex
from services.store.domain.names import row_key, run_name

POOLS_FILE = "pools.json"
SPLIT_MANIFEST_FILE = "split_manifest.json"
POOL_NAMES = ("diag", "val", "test")


@dataclass(frozen=True, slots=True)
class PoolUnit:
    """A unit's place in a split; `pool` is `diag`, `val` or `test`."""

    unit_id: str
    task_type: str
    video_id: str
    question_ids: tuple[str, ...]
    pool: str


@dataclass(frozen=True, slots=True)
class Pools:
    """A split: the baseline run it rests on, the question set, and every unit's place, in a stable order."""

    baseline_run_id: str
    dataset: str
    units: tuple[PoolUnit, ...]

    def file_content(self) -> bytes:
        """Return the bytes of `pools.json`: equal splits have equal bytes."""
        return readable_json(asdict(self)).encode()

    @property
    def sha256(self) -> str:
        """The fingerprint: SHA-256 of the file's bytes, in hex."""
        return sha256_hex(self.file_content())


def checked_pools(pools: Pools) -> Pools:
    """Return the pools if they are sound; raise InvalidRequest naming the first field that is not.

    No unit or question stands twice, and no video straddles two pools.
    """
    run_name(pools.baseline_run_id, "pools.baseline_run_id")
    if not pools.units:
        raise InvalidRequest("pools hold no unit", field="pools.units")
    units: set[str] = set()
    questions: set[str] = set()
    pool_of_video: dict[str, str] = {}
    for index, unit in enumerate(pools.units):
        at = f"pools.units[{index}]"
        row_key(unit.unit_id, f"{at}.unit_id")
        row_key(unit.task_type, f"{at}.task_type")
        if unit.pool not in POOL_NAMES:
            raise InvalidRequest(f"{at}.pool is not one of {', '.join(POOL_NAMES)}", field=f"{at}.pool")
        if not unit.question_ids:
            raise InvalidRequest(f"unit {unit.unit_id!r} has no question", field=f"{at}.question_ids")
        if unit.unit_id in units:
            raise InvalidRequest(f"unit {unit.unit_id!r} stands twice", field=f"{at}.unit_id")
        if twice := questions.intersection(unit.question_ids):
            raise InvalidRequest(f"question {min(twice)!r} stands in two units", field=f"{at}.question_ids")
        if unit.video_id and pool_of_video.setdefault(unit.video_id, unit.pool) != unit.pool:
            raise InvalidRequest(f"video {unit.video_id!r} straddles two pools", field=f"{at}.pool")
        units.add(unit.unit_id)
        questions.update(unit.question_ids)
    return pools


def parse_pools(document: Mapping[str, object]) -> Pools:
    """Return the pools that `file_content` wrote; raise KeyError, TypeError or ValueError for anything else."""
    units = document["units"]
    if not isinstance(units, Sequence) or isinstance(units, str):
        raise TypeError("units is not a list")
    return Pools(
        baseline_run_id=str(document["baseline_run_id"]),
        dataset=str(document["dataset"]),
        units=tuple(PoolUnit(**{**unit, "question_ids": tuple(unit["question_ids"])}) for unit in units),
    )


def backup_name(sha256: str) -> str:
    """Return the name under which replaced pools are kept."""
    return f"{POOLS_FILE}.bak.{sha256[:8]}"


def require_freezable(frozen_sha256: str, offered_sha256: str, *, force: bool) -> bool:
    """Return whether frozen pools are about to be replaced; raise PoolsAlreadyFrozen if that needs force."""
    if not frozen_sha256 or frozen_sha256 == offered_sha256:
        return False
    if not force:
        raise PoolsAlreadyFrozen(frozen_sha256, offered_sha256)
    return True


def require_frozen(recorded_sha256: str, found_sha256: str, recorded_baseline: str, found_baseline: str) -> None:
    """Raise PoolsMismatch unless the file is the frozen one and rests on the workspace's baseline run.

    A workspace made without a seed records no baseline run; then only the file is compared.
    """
    if recorded_sha256 != found_sha256:
        raise PoolsMismatch("pools_sha256", recorded_sha256, found_sha256)
    if recorded_baseline and recorded_baseline != found_baseline:
        raise PoolsMismatch("baseline_run_id", recorded_baseline, found_baseline)
