"""Freezing and reading a workspace's split (STO-10)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace

from services.store.domain import frozen_pools
from services.store.domain.errors import NotFound, PoolsMismatch
from services.store.domain.fingerprints import readable_json, sha256_hex
from services.store.domain.frozen_pools import POOLS_FILE, SPLIT_MANIFEST_FILE, Pools, backup_name
from services.store.domain.rows import checked_json_object
from services.store.use_cases.manifests import ManifestProjection, read_manifest, save_manifest
from services.store.use_cases.ports import Folder, LedgerFolder, LedgerFolders, LedgerTransaction


@dataclass(frozen=True, slots=True)
class Frozen:
    """The fingerprint of the frozen pools, and the backup that force made of the old file (empty if none)."""

    pools_sha256: str
    backup_name: str


class FrozenPools:
    """The splits of all workspaces."""

    def __init__(self, workspaces: LedgerFolders, projection: ManifestProjection) -> None:
        self._workspaces = workspaces
        self._projection = projection

    async def freeze(self, workspace: str, pools: Pools, split_manifest_json: str, *, force: bool) -> Frozen:
        """Freeze a split; the same one again is a no-op. Raises PoolsAlreadyFrozen without force, InvalidRequest."""
        frozen_pools.checked_pools(pools)
        split = readable_json(checked_json_object(split_manifest_json, "split_manifest_json")).encode()
        folder = await self._workspaces.open(workspace)
        frozen = await folder.ledger.write(lambda transaction: _freeze(transaction, folder.files, pools, split, force))
        await self._projection.refresh(folder)
        return frozen

    async def get(self, workspace: str) -> tuple[Pools, str, str]:
        """Return the split, its fingerprint and its manifest as JSON.

        Raises NotFound when nothing is frozen, PoolsMismatch when the file is not the frozen one or rests on another
        baseline run than the workspace's seed.
        """
        folder = await self._workspaces.open(workspace)
        manifest = await folder.ledger.read(read_manifest)
        if not manifest.pools_sha256:
            raise NotFound("frozen split of workspace", workspace, field="workspace")
        content, split = await asyncio.to_thread(read_frozen, folder.files)
        pools = parse_frozen(content, manifest.pools_sha256)
        frozen_pools.require_frozen(
            manifest.pools_sha256, sha256_hex(content), manifest.baseline_run_id, pools.baseline_run_id
        )
        return pools, manifest.pools_sha256, split.decode()


def read_frozen(files: Folder) -> tuple[bytes, bytes]:
    """Return the bytes of both files; raises PoolsMismatch if one is gone."""
    content, split = files.read(POOLS_FILE), files.read(SPLIT_MANIFEST_FILE)
    if content is None or split is None:
        raise PoolsMismatch(POOLS_FILE if content is None else SPLIT_MANIFEST_FILE, "a file", "no file")
    return content, split


def parse_frozen(content: bytes, recorded_sha256: str) -> Pools:
    """Return the split in `pools.json`; raises PoolsMismatch for anything but the recorded bytes."""
    found = sha256_hex(content)
    if found != recorded_sha256:
        raise PoolsMismatch("pools_sha256", recorded_sha256, found)
    return frozen_pools.parse_pools(json.loads(content))


def restore_interrupted_freeze(folder: LedgerFolder, recorded_sha256: str) -> bool:
    """Put the recorded pools back if a forced freeze died between its files and its commit; returns whether it did."""
    found = folder.files.read(POOLS_FILE)
    if not recorded_sha256 or (found is not None and sha256_hex(found) == recorded_sha256):
        return False
    kept = folder.files.read(backup_name(recorded_sha256))
    if kept is None or sha256_hex(kept) != recorded_sha256:
        return False
    split = folder.files.read(_split_backup_name(recorded_sha256))
    if split is not None:
        folder.files.write(SPLIT_MANIFEST_FILE, split)
    folder.files.write(POOLS_FILE, kept)
    return True


def _freeze(transaction: LedgerTransaction, files: Folder, pools: Pools, split: bytes, force: bool) -> Frozen:
    manifest = read_manifest(transaction)
    sha256 = pools.sha256
    replaced = frozen_pools.require_freezable(manifest.pools_sha256, sha256, force=force)
    if replaced:
        _keep(files, manifest.pools_sha256)
    # An interruption from here to the commit leaves files that do not match the manifest: the next start puts the kept
    # ones back, and until then loading refuses them. The pools go first, since it is they that are seen not to match.
    files.write(POOLS_FILE, pools.file_content())
    files.write(SPLIT_MANIFEST_FILE, split)
    save_manifest(transaction, replace(manifest, pools_sha256=sha256))
    return Frozen(sha256, backup_name(manifest.pools_sha256) if replaced else "")


def _keep(files: Folder, sha256: str) -> None:
    """Copy what is frozen; a freeze that failed before has left other pools there, and kept the frozen ones itself."""
    frozen = files.read(POOLS_FILE)
    if frozen is None or sha256_hex(frozen) != sha256:
        return
    for name, kept_name in ((SPLIT_MANIFEST_FILE, _split_backup_name(sha256)), (POOLS_FILE, backup_name(sha256))):
        content = files.read(name)
        if content is not None:
            files.write(kept_name, content)


def _split_backup_name(sha256: str) -> str:
    return f"{SPLIT_MANIFEST_FILE}.bak.{sha256[:8]}"
