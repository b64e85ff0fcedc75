"""Search over a tree's texts by embeddings, where an `embed` role is configured."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from async_lru import alru_cache

from services.inference.domain.agent_view import node_text
from services.inference.domain.chat import CallOrigin, EmbedRequest
from services.inference.use_cases.answer_ports import Hit, LoadedTree
from services.inference.use_cases.ports import NO_ORIGIN, ChatModel
from services.video_tree import Node

_TEXTS_A_CALL = 64
_TREES_KEPT = 64
_Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A tree whose vectors are wanted, and who first wants them; the kept vectors are the tree's alone."""

    loaded: LoadedTree
    origin: CallOrigin = field(compare=False)


class EmbeddingSearch:
    """NodeSearch by cosine similarity; the vectors of a tree are asked for once and kept.

    Raises an InferenceError where the model can't be reached, as every tool does.
    """

    def __init__(self, model: ChatModel, trees_kept: int = _TREES_KEPT) -> None:
        self._model = model
        self._kept_vectors = alru_cache(maxsize=trees_kept)(self._tree_vectors)

    async def search(self, loaded: LoadedTree, query: str, most: int, *, origin: CallOrigin = NO_ORIGIN) -> list[Hit]:
        """See NodeSearch. The score is the cosine, at most 1; only nodes with a text are found."""
        nodes = _nodes_with_text(loaded)
        if not nodes:
            return []
        vectors = await self._kept_vectors(_Wanted(loaded, origin))
        scores = vectors @ (await self._vectors([query], origin))[0]
        order = np.argsort(-scores, kind="stable")[:most]
        return [Hit(nodes[place][0], float(scores[place])) for place in order]

    async def _tree_vectors(self, wanted: _Wanted) -> _Vectors:
        return await self._vectors([text for _, text in _nodes_with_text(wanted.loaded)], wanted.origin)

    async def _vectors(self, texts: list[str], origin: CallOrigin) -> _Vectors:
        """One vector of length 1 a text (all zeros where the model gives zeros)."""
        rows: list[tuple[float, ...]] = []
        for start in range(0, len(texts), _TEXTS_A_CALL):
            batch = tuple(texts[start : start + _TEXTS_A_CALL])
            rows.extend((await self._model.embed(EmbedRequest(batch), salt=None, origin=origin)).vectors)
        vectors = np.asarray(rows, dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units: _Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        return units


def _nodes_with_text(loaded: LoadedTree) -> list[tuple[Node, str]]:
    return [(node, text) for node in loaded.tree.nodes.values() if (text := node_text(node))]
