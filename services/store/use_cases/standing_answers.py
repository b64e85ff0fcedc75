"""Answers that stand on the library's content: what they were given to may not change under them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from services.store.domain.errors import PreconditionFailed
from services.store.use_cases.manifests import read_manifest
from services.store.use_cases.ports import LedgerFolder, LedgerFolders, LedgerReader, Query
from services.store.use_cases.seeds import seed_of

_IDS_A_QUERY = 500
_NAMED = 5


class StandingAnswers(Protocol):
    """Refuses to replace what was answered already; it changes nothing. Each raises PreconditionFailed naming where."""

    async def require_none_to_questions(self, dataset: str, question_ids: Sequence[str]) -> None:
        """Return if no answer to these questions of the set is kept anywhere."""

    async def require_none_about_video(self, video_id: str) -> None:
        """Return if no answer to a question about the video is kept anywhere."""


class LedgerAnswers:
    """The predictions of all workspaces and seeds."""

    def __init__(self, workspaces: LedgerFolders, seeds: LedgerFolders) -> None:
        self._holders = (("workspace", workspaces, _dataset_of_workspace), ("seed", seeds, _dataset_of_seed))

    async def require_none_to_questions(self, dataset: str, question_ids: Sequence[str]) -> None:
        """See StandingAnswers."""
        for kind, folders, dataset_of in self._holders:
            for folder in await _opened(folders):
                if await dataset_of(folder) != dataset:
                    continue
                if answered := await _answered(folder, "question_id", question_ids):
                    raise PreconditionFailed(
                        f"{kind} {folder.name!r} holds answers to questions of {dataset!r} that would change or vanish "
                        f"({', '.join(answered[:_NAMED])}); import the new set under another name"
                    )

    async def require_none_about_video(self, video_id: str) -> None:
        """See StandingAnswers."""
        for kind, folders, _ in self._holders:
            for folder in await _opened(folders):
                if await _answered(folder, "video_id", [video_id]):
                    raise PreconditionFailed(
                        f"{kind} {folder.name!r} holds answers about video {video_id!r}, given on its present tree; "
                        "import the new tree into another data root"
                    )


async def _opened(folders: LedgerFolders) -> list[LedgerFolder]:
    return [await folders.open(name) for name in await folders.names()]


async def _dataset_of_workspace(folder: LedgerFolder) -> str:
    return (await folder.ledger.read(read_manifest)).current["questions"]


async def _dataset_of_seed(folder: LedgerFolder) -> str:
    return (await seed_of(folder)).dataset


async def _answered(folder: LedgerFolder, column: str, values: Sequence[str]) -> list[str]:
    """The values that stand in predictions, of the first few hundred of which any does."""
    return await folder.ledger.read(lambda reader: _found(reader, column, values))


def _found(reader: LedgerReader, column: str, values: Sequence[str]) -> list[str]:
    for start in range(0, len(values), _IDS_A_QUERY):
        wanted = {column: values[start : start + _IDS_A_QUERY]}
        rows = reader.find(Query("predictions", one_of=wanted, order=(column,), columns=(column,), distinct=True))
        if rows:
            return [row[column] for row in rows]
    return []
