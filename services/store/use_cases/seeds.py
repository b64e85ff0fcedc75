"""Seeds: frozen starting points from which workspaces are made (STO-11)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from typing import Final

from services.store.domain.baseline import first_per_question
from services.store.domain.errors import InvalidRequest, NotFound, PoolsMismatch, PreconditionFailed
from services.store.domain.fingerprints import readable_json
from services.store.domain.frozen_pools import POOLS_FILE, SPLIT_MANIFEST_FILE
from services.store.domain.names import lower_component, run_name
from services.store.domain.seed import Seed, parse_seed
from services.store.use_cases.manifests import read_manifest
from services.store.use_cases.paging import Page, PageRequest, name_page, row_chunks
from services.store.use_cases.pools import parse_frozen, read_frozen
from services.store.use_cases.ports import Clock, Ledger, LedgerFolder, LedgerFolders, LedgerTransaction, Query, Row
from services.store.use_cases.publish import VersionChange, publish, version_row, version_texts

SEED_FILE = "seed.json"
KINDS: Final = ("skills", "prompts")
# Predictions are not among them: only the first row of a question becomes part of a seed.
_BESIDE_PREDICTIONS: Final = (
    "runs",
    "traces",
    "question_metrics",
    "span_evaluations",
    "diagnosis_traces",
    "baseline_diagnosis",
)
_COPY_ROWS = 500


@dataclass(frozen=True, slots=True)
class SeedRequest:
    """From which workspace, run and versions a seed is made, and whether the frozen split goes with it."""

    name: str
    source_workspace: str
    source_run_id: str
    skills_version: str
    prompts_version: str
    with_pools: bool


@dataclass(frozen=True, slots=True)
class _Pools:
    content: bytes
    split: bytes
    sha256: str


class Seeds:
    """All seeds of the data root."""

    def __init__(self, seeds: LedgerFolders, workspaces: LedgerFolders, clock: Clock) -> None:
        self._seeds = seeds
        self._workspaces = workspaces
        self._clock = clock

    async def create(self, request: SeedRequest, *, force: bool) -> tuple[Seed, int]:
        """Make a seed out of a workspace's run; returns it and the number of rows left out as repetitions.

        Raises NotFound (workspace, version, a run without predictions), AlreadyExists without force, PoolsMismatch if
        the split rests on another baseline run.
        """
        lower_component(request.name, "name")
        run_name(request.source_run_id, "source_run_id")
        source = await self._workspaces.open(request.source_workspace)
        manifest = await source.ledger.read(read_manifest)
        pools = await self._frozen(source, manifest.pools_sha256, request) if request.with_pools else None
        versions = {"skills": request.skills_version, "prompts": request.prompts_version}
        texts = {kind: await _texts(source, kind, versions[kind]) for kind in KINDS}
        made: list[tuple[Seed, int]] = []

        async def fill(draft: LedgerFolder) -> None:
            now = self._clock()
            rows = await draft.ledger.write(lambda transaction: _publish_first(transaction, draft, texts, now))
            kept, dropped = await _copy_baseline(source.ledger, draft.ledger, request.source_run_id)
            if not kept:
                raise NotFound("run with predictions", request.source_run_id, field="source_run_id")
            if pools:
                await asyncio.to_thread(_write_pools, draft, pools)
            seed = Seed(
                name=request.name,
                created_time=now,
                dataset=manifest.current["questions"],
                baseline_run_id=request.source_run_id,
                prediction_count=kept,
                pools_sha256=pools.sha256 if pools else "",
                skills_sha256=rows["skills"]["sha256"],
                prompts_sha256=rows["prompts"]["sha256"],
            )
            await asyncio.to_thread(draft.files.write, SEED_FILE, readable_json(asdict(seed)).encode())
            made.append((seed, dropped))

        await self._seeds.create(request.name, fill, replace=force)
        return made[0]

    async def page(self, request: PageRequest) -> Page[Seed]:
        """Return seeds in ascending order of name."""
        names = name_page("seeds", await self._seeds.names(), request)
        return Page([await seed_of(await self._seeds.open(name)) for name in names.items], names.next_token)

    async def open(self, name: str) -> LedgerFolder:
        """Return a seed's folder and database; raises NotFound."""
        return await self._seeds.open(lower_component(name, "seed"))

    async def copy_into(self, seed: LedgerFolder, draft: LedgerFolder) -> Seed:
        """Copy all of a seed into a new workspace: baseline, diagnosis, pools, v1 skills and prompts."""
        found = await seed_of(seed)
        texts = {kind: await _texts(seed, kind, "v1") for kind in KINDS}
        await draft.ledger.write(lambda transaction: _publish_first(transaction, draft, texts, self._clock()))
        await _copy_baseline(seed.ledger, draft.ledger, found.baseline_run_id)
        if found.pools_sha256:
            content, split = await asyncio.to_thread(read_frozen, seed.files)
            parse_frozen(content, found.pools_sha256)
            await asyncio.to_thread(_write_pools, draft, _Pools(content, split, found.pools_sha256))
        return found

    async def _frozen(self, source: LedgerFolder, recorded_sha256: str, request: SeedRequest) -> _Pools:
        if not recorded_sha256:
            raise InvalidRequest("the source workspace has no frozen split; freeze it first", field="with_pools")
        content, split = await asyncio.to_thread(read_frozen, source.files)
        baseline = parse_frozen(content, recorded_sha256).baseline_run_id
        if baseline != request.source_run_id:
            raise PoolsMismatch("baseline_run_id", request.source_run_id, baseline)
        return _Pools(content, split, recorded_sha256)


async def _copy_baseline(source: Ledger, target: Ledger, run_id: str) -> tuple[int, int]:
    """Copy a run and what is known about it; returns the predictions kept and those left out."""
    of_run = {"run_id": run_id}
    seen: set[str] = set()
    total = 0
    async for rows in row_chunks(source, Query("predictions", equal=of_run), _COPY_ROWS):
        total += len(rows)
        await target.append("predictions", [dict(row) for row in first_per_question(rows, seen)])
    for table in _BESIDE_PREDICTIONS:
        async for rows in row_chunks(source, Query(table, equal=of_run), _COPY_ROWS):
            await target.append(table, rows)
    return len(seen), total - len(seen)


async def _texts(folder: LedgerFolder, kind: str, version: str) -> dict[str, str]:
    row = await folder.ledger.read(lambda reader: version_row(reader, kind, version, f"{kind}_version"))
    return await asyncio.to_thread(version_texts, folder.files, row)


async def seed_of(seed: LedgerFolder) -> Seed:
    """What the seed in this folder says about itself; raises PreconditionFailed if it says nothing."""
    content = await asyncio.to_thread(seed.files.read, SEED_FILE)
    if content is None:
        raise PreconditionFailed(f"seed {seed.name!r} has no {SEED_FILE}; make it again")
    return parse_seed(json.loads(content))


def _publish_first(
    transaction: LedgerTransaction, draft: LedgerFolder, texts: dict[str, dict[str, str]], now: str
) -> dict[str, Row]:
    return {
        kind: publish(
            transaction, draft.files, VersionChange(kind, "", texts[kind], (), "import", "", "from seed"), now
        )[0]
        for kind in KINDS
    }


def _write_pools(draft: LedgerFolder, pools: _Pools) -> None:
    draft.files.write(SPLIT_MANIFEST_FILE, pools.split)
    draft.files.write(POOLS_FILE, pools.content)
