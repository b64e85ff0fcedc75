"""Search over a tree's texts by BM25 (bm25s, the Lucene variant, English stems), one index a tree."""

import asyncio
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import Stemmer
from async_lru import alru_cache

from services.inference.domain.agent_view import node_text
from services.inference.domain.chat import CallOrigin
from services.inference.use_cases.answer_ports import Hit, LoadedTree
from services.inference.use_cases.ports import NO_ORIGIN
from services.video_tree import Node

_INDEXES_KEPT = 128
_WORD = r"(?u)\b\w+\b"


@dataclass(frozen=True, slots=True)
class _Index:
    nodes: tuple[Node, ...]
    ranking: Any | None


class Bm25Search:
    """NodeSearch without a model: deterministic, ties in the order of the tree's file."""

    def __init__(self, indexes_kept: int = _INDEXES_KEPT) -> None:
        self._kept_index = alru_cache(maxsize=indexes_kept)(_built)

    async def search(self, loaded: LoadedTree, query: str, most: int, *, origin: CallOrigin = NO_ORIGIN) -> list[Hit]:
        """See NodeSearch. The score is BM25's; nodes that share no word with the query are left out."""
        return _best(await self._kept_index(loaded), query, most)


async def _built(loaded: LoadedTree) -> _Index:
    return await asyncio.to_thread(_index, loaded)


def _index(loaded: LoadedTree) -> _Index:
    nodes = tuple(loaded.tree.nodes.values())
    words = _words([node_text(node) for node in nodes])
    if not any(words):
        return _Index(nodes, None)
    ranking = _library().BM25()
    ranking.index(words, show_progress=False)
    return _Index(nodes, ranking)


def _best(index: _Index, query: str, most: int) -> list[Hit]:
    words = _words([query])[0]
    if index.ranking is None or not words:
        return []
    scores = index.ranking.get_scores(words)
    order = (-scores).argsort(kind="stable")[:most]
    return [Hit(index.nodes[place], float(scores[place])) for place in order if scores[place] > 0]


def _library() -> Any:
    """bm25s, imported at the first search: with numpy and scipy it is a second and 40 MB of a service that is idle."""
    return import_module("bm25s")


def _words(texts: list[str]) -> list[list[str]]:
    stemmer = Stemmer.Stemmer("english")
    found = _library().tokenize(
        texts, stopwords="en", stemmer=stemmer, token_pattern=_WORD, return_ids=False, show_progress=False
    )
    return [list(words) for words in found]
