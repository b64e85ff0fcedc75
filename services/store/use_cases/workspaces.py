"""Workspaces: made from files or a seed, their manifest and their reports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from services.store.domain.errors import InvalidRequest, NotFound
from services.store.domain.manifest import BestEntry, Manifest, require_etag, with_best, with_current, with_run
from services.store.domain.names import lower_component, run_name
from services.store.use_cases.library import Library
from services.store.use_cases.manifests import ManifestProjection, read_manifest, save_manifest
from services.store.use_cases.paging import Page, PageRequest, name_page
from services.store.use_cases.ports import Clock, Fill, LedgerFolder, LedgerFolders, LedgerReader, LedgerTransaction
from services.store.use_cases.publish import VersionChange, publish, version_row
from services.store.use_cases.seeds import Seeds

VIDEO_LIBRARY = "library"
MAX_REPORT_BYTES = 32 * 1024 * 1024
_REPORTS = "reports"


@dataclass(frozen=True, slots=True)
class InitialContent:
    """The first files of a workspace that is made without a seed."""

    dataset: str
    skills: Mapping[str, str]
    prompts: Mapping[str, str]


class Workspaces:
    """All workspaces of the data root."""

    def __init__(
        self,
        workspaces: LedgerFolders,
        seeds: Seeds,
        library: Library,
        projection: ManifestProjection,
        clock: Clock,
    ) -> None:
        self._workspaces = workspaces
        self._seeds = seeds
        self._library = library
        self._projection = projection
        self._clock = clock

    async def create(self, name: str, origin: InitialContent | str, *, force: bool) -> Manifest:
        """Make a workspace from files, or from the seed of this name.

        Raises AlreadyExists without force, NotFound for the seed or question set, InvalidRequest for a bad file.
        """
        fill = await self._from_seed(name, origin) if isinstance(origin, str) else await self._from_files(name, origin)
        folder = await self._workspaces.create(name, fill, replace=force)
        return await folder.ledger.read(read_manifest)

    async def get(self, workspace: str) -> tuple[Manifest, str]:
        """Return the manifest and the folder's absolute path."""
        folder = await self._workspaces.open(workspace)
        return await folder.ledger.read(read_manifest), folder.files.path

    async def page(self, request: PageRequest) -> Page[Manifest]:
        """Return manifests in ascending order of name."""
        names = name_page("workspaces", await self._workspaces.names(), request)
        return Page([(await self.get(name))[0] for name in names.items], names.next_token)

    async def update_current(self, workspace: str, changes: Mapping[str, str], etag: str) -> Manifest:
        """Change `current`; raises StaleEtag, UnknownManifestKey, InvalidRequest for what does not exist."""
        if "questions" in changes and not await self._library.has_dataset(changes["questions"]):
            raise InvalidRequest(f"question set {changes['questions']!r} is not in the library", field="current")

        def change(manifest: Manifest, reader: LedgerReader) -> Manifest:
            changed = with_current(manifest, changes)
            for kind in ("skills", "prompts"):
                if kind in changes:
                    _require_version(reader, kind, changes[kind], "current")
            return changed

        return await self._change(workspace, etag, change)

    async def update_best(self, workspace: str, entries: Mapping[str, BestEntry], etag: str) -> Manifest:
        """Replace best entries; raises StaleEtag, InvalidRequest."""

        def change(manifest: Manifest, reader: LedgerReader) -> Manifest:
            changed = with_best(manifest, entries)
            for measure, entry in entries.items():
                _require_version(reader, "skills", entry.skills, f"best.{measure}.skills")
                _require_version(reader, "prompts", entry.prompts, f"best.{measure}.prompts")
            return changed

        return await self._change(workspace, etag, change)

    async def record_run(self, workspace: str, run_id: str) -> Manifest:
        """Append a snapshot of `current`; the same run twice is one entry."""
        run_name(run_id, "run_id")
        now = self._clock()
        return await self._change(workspace, None, lambda manifest, _: with_run(manifest, run_id, now))

    async def write_report(self, workspace: str, name: str, content: bytes) -> str:
        """Write one file below `reports/`; returns its absolute path. Raises InvalidRequest for name or size."""
        path = _report_path(name)
        if len(content) > MAX_REPORT_BYTES:
            raise InvalidRequest(f"the report has {len(content)} bytes, at most {MAX_REPORT_BYTES}", field="content")
        folder = await self._workspaces.open(workspace)
        await asyncio.to_thread(folder.files.write, path, content)
        return f"{folder.files.path}/{path}"

    async def read_report(self, workspace: str, name: str) -> bytes:
        """Return one file below `reports/`; raises NotFound."""
        folder = await self._workspaces.open(workspace)
        content = await asyncio.to_thread(folder.files.read, _report_path(name))
        if content is None:
            raise NotFound("report", name, field="name")
        return content

    async def _change(
        self, workspace: str, etag: str | None, change: Callable[[Manifest, LedgerReader], Manifest]
    ) -> Manifest:
        folder = await self._workspaces.open(workspace)
        manifest = await folder.ledger.write(
            lambda transaction: _changed(read_manifest(transaction), etag, change, transaction)
        )
        await self._projection.refresh(folder)
        return manifest

    async def _from_files(self, name: str, content: InitialContent) -> Fill:
        if not await self._library.has_dataset(content.dataset):
            raise NotFound("question set", content.dataset, field="initial.dataset")
        now = self._clock()

        async def fill(draft: LedgerFolder) -> None:
            await draft.ledger.write(lambda transaction: _publish_first(transaction, draft, content, now))
            manifest = _first_manifest(name, content.dataset, now)
            await draft.ledger.write(lambda transaction: save_manifest(transaction, manifest))
            await self._projection.refresh(draft)

        return fill

    async def _from_seed(self, name: str, seed: str) -> Fill:
        source = await self._seeds.open(seed)
        now = self._clock()

        async def fill(draft: LedgerFolder) -> None:
            found = await self._seeds.copy_into(source, draft)
            manifest = replace(
                _first_manifest(name, found.dataset, now),
                seed=seed,
                baseline_run_id=found.baseline_run_id,
                pools_sha256=found.pools_sha256,
            )
            await draft.ledger.write(lambda transaction: save_manifest(transaction, manifest))
            await self._projection.refresh(draft)

        return fill


def _first_manifest(name: str, dataset: str, now: str) -> Manifest:
    current = {"videos": VIDEO_LIBRARY, "questions": dataset, "skills": "v1", "prompts": "v1"}
    return Manifest(name, now, current)


def _publish_first(transaction: LedgerTransaction, draft: LedgerFolder, content: InitialContent, now: str) -> None:
    for kind, texts in (("skills", content.skills), ("prompts", content.prompts)):
        publish(transaction, draft.files, VersionChange(kind, "", texts, (), "import", "", "first version"), now)


def _changed(
    manifest: Manifest,
    etag: str | None,
    change: Callable[[Manifest, LedgerReader], Manifest],
    transaction: LedgerTransaction,
) -> Manifest:
    if etag is not None:
        require_etag(manifest, etag)
    changed = change(manifest, transaction)
    if changed != manifest:
        save_manifest(transaction, changed)
    return changed


def _require_version(reader: LedgerReader, kind: str, version: str, field: str) -> None:
    try:
        version_row(reader, kind, version, field)
    except NotFound as error:
        raise InvalidRequest(str(error), field=field) from error


def _report_path(name: str) -> str:
    parts = name.split("/")
    if len(parts) > 2:
        raise InvalidRequest("a report's name has at most two components", field="name")
    return "/".join([_REPORTS, *(lower_component(part, "name") for part in parts)])
